"""Storing and reading back a large artifact against cp and sha256sum, and the memory that it takes."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.measure import BenchError, Pairs, Took, paired, processor, seconds, timed
from benchmarks.place import bench_home
from benchmarks.results import Measured
from rocwheel.files.atomic import CHUNK
from rocwright.bases.roots import remove_tree
from rocwright.store.local import LocalStore

GIB = 1024**3
SIZE = "ROCWRIGHT_BENCH_ARTIFACT_GIB"
"""Environment variable with the artifact's size where 4 GiB are too many (the row then says so)."""


def measure(runs: int | None) -> Sequence[Measured]:
    """Four rows: store, read back, lay out, memory."""
    size = int(float(os.environ.get(SIZE, "4")) * GIB)
    folder = bench_home().path / "bench" / "store"
    remove_tree(folder)
    folder.mkdir(parents=True)
    free = shutil.disk_usage(folder).free
    if free < 4 * size:
        raise BenchError(f"{4 * size / GIB:.0f} GiB must be free in {folder}; {free / GIB:.0f} are")
    try:
        return _measure(folder, size, runs or 5)
    finally:
        remove_tree(folder)


def _measure(folder: Path, size: int, runs: int) -> list[Measured]:
    data, copy, back, log = (folder / name for name in ("data", "copy", "back", "log"))
    _make(data, size)
    store = LocalStore(folder / "store")
    memory: dict[str, int] = {}
    digest = ""

    def rocwright(verb: str, *words: str | Path) -> Took:
        argv = [sys.executable, "-m", __name__, verb, store.path, *words]
        took = _alone(lambda: timed(argv, log=log), back)
        told = json.loads(log.read_text())
        memory[verb] = max(memory.get(verb, 0), told["memory"])
        nonlocal digest
        digest = told["sha256"]
        return took

    def put() -> Took:
        for sha256, _ in list(store.blobs()):
            store.remove_blob(sha256)
        return rocwright("put", data)

    def shell(text: str, *drop: Path) -> Took:
        return _alone(lambda: timed(["/bin/sh", "-eu", "-c", text], log=log), *drop)

    def words(*each: str | Path) -> str:
        return shlex.join(map(str, each))

    stored = paired(
        put,
        lambda: shell(f"{words('cp', data, copy)}; {words('sync', copy)}; {words('sha256sum', copy)}", copy),
        runs,
    )
    copy.unlink()
    blob = store.verified(digest)
    read = paired(
        lambda: rocwright("get", digest, back),
        lambda: shell(f"{words('sha256sum', blob)}; {words('cp', blob, back)}; {words('sync', back)}", back),
        runs,
    )
    laid = paired(
        lambda: rocwright("lay-out", digest, back),
        lambda: shell(f"{words('sha256sum', blob)}; {words('cp', blob, back)}", back),
        runs,
    )
    what = f"{size / GIB:g} GiB artifact"
    return [
        _speed(
            "store:write", f"storing a {what} (copied in)", stored, "cp, sync FILE, sha256sum; both flushed"
        ),
        _speed(
            "store:read",
            f"reading back a {what}, checked as it passes",
            read,
            "sha256sum, cp, sync FILE; both flushed",
        ),
        _speed(
            "store:lay-out",
            f"checking and laying out a {what}",
            laid,
            "sha256sum, cp; neither flushed (as `build` puts artifacts into the output folder)",
        ),
        Measured(
            name="store:memory",
            what=f"memory of rocwright while it stores and reads back a {what}",
            values=[one / 1024**2 for one in memory.values()],
            unit="MiB",
            most=150,
            note="peak resident memory of the process (VmHWM): "
            + ", ".join(f"{verb} {one / 1024**2:.0f} MiB" for verb, one in memory.items()),
        ),
    ]


def _speed(name: str, what: str, pairs: Pairs, against: str) -> Measured:
    return Measured(
        name=name,
        what=f"{what}: speed as a part of the speed of cp plus sha256sum",
        values=[b.wall / a.wall for a, b in zip(pairs.a, pairs.b, strict=True)],
        least=0.8,
        note=f"{seconds(pairs.a)} against {seconds(pairs.b)} for {against}; "
        f"processor time {processor(pairs.a)} against {processor(pairs.b)}; incompressible bytes, "
        "same disk, files in the page cache as the size allows, whole processes",
    )


def _alone(run: Callable[[], Took], *drop: Path) -> Took:
    """Run with nothing waiting to be written."""
    for path in drop:
        path.unlink(missing_ok=True)
    os.sync()
    return run()


def _make(path: Path, size: int) -> None:
    with path.open("wb") as file:
        for at in range(0, size, 16 * CHUNK):
            file.write(os.urandom(min(16 * CHUNK, size - at)))
        file.flush()
        os.fsync(file.fileno())


def _peak() -> int:
    """Bytes; of this program alone, where getrusage would count what ran before it in this process too."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _child(verb: str, folder: Path, *words: str) -> str:
    store = LocalStore(folder)
    match verb:
        case "put":
            return store.put_file(Path(words[0]))[0]
        case "get":
            with Path(words[1]).open("wb") as file:
                for chunk in store.chunks(words[0]):
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
        case "lay-out":
            shutil.copyfile(store.verified(words[0]), words[1])
    return words[0]


if __name__ == "__main__":
    done = _child(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
    print(json.dumps({"sha256": done, "memory": _peak()}))
