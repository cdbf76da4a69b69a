"""A real wheel made smaller, against Python's zipfile writing the same output; size and memory."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from samples.fetched import real_wheel

from benchmarks.measure import Took, paired, processor, seconds, timed
from benchmarks.place import BIN, bench_home
from benchmarks.results import Measured
from rocwheel.wheels.devicecode.code_objects import fat_binaries
from rocwright.bases.roots import remove_tree

PROJECT, VERSION, GPU = "onnxruntime-rocm", "1.22.2.post3", "gfx1030"
MIB = 1024**2


def measure(runs: int | None) -> Sequence[Measured]:
    """Three rows: speed, size, memory."""
    folder = bench_home().path / "bench" / "wheel-slim"
    remove_tree(folder)
    folder.mkdir(parents=True)
    try:
        return _measure(real_wheel(PROJECT, VERSION), folder, runs or 5)
    finally:
        remove_tree(folder)


def _measure(wheel: Path, folder: Path, runs: int) -> list[Measured]:
    log, out, files = folder / "log", folder / "out", folder / "files"
    memory: list[int] = []

    def slim() -> Took:
        remove_tree(out)
        return timed(
            [BIN / "python", "-m", "rocwright", "wheel", "slim", wheel, "--gpu", GPU, "-o", out], log=log
        )

    slim()
    (slimmed,) = out.glob("*.whl")
    with zipfile.ZipFile(slimmed) as archive:
        archive.extractall(files)
    pairs = paired(
        slim, lambda: timed([BIN / "python", "-m", __name__, "zip", files, folder / "zip.whl"], log=log), runs
    )
    for _ in range(runs):
        remove_tree(out)
        timed([BIN / "python", "-m", __name__, "slim", wheel, out], log=log)
        memory.append(json.loads(log.read_text().splitlines()[-1])["memory"])
    remove_tree(out)
    timed(
        [BIN / "python", "-m", "rocwright", "wheel", "slim", wheel, "--gpu", GPU, "-o", out, "--json"],
        log=log,
    )
    report = json.loads(log.read_text()[log.read_text().index("\n{") :])
    library = max(report["changed"], key=lambda one: one["before"])
    binary = next(one for member, _, one in fat_binaries(wheel) if member.path == library["path"])
    bundles = sum(size for _, size in binary.spans)
    must_stay = library["before"] - bundles + sum(library["stayed"].values())
    what = f"`wheel slim` of {PROJECT} {VERSION} to one target of {1 + len(library['went'])}"
    return [
        Measured(
            name="wheel-slim",
            what=f"{what}: times as fast as zipfile writing the same files",
            values=[b.wall / a.wall for a, b in zip(pairs.a, pairs.b, strict=True)],
            least=3,
            note=f"{seconds(pairs.a)} against {seconds(pairs.b)}, "
            f"processor time {processor(pairs.a)} against {processor(pairs.b)}; whole commands; "
            "slim reads the old wheel, zipfile files that are unpacked "
            "already; files in the page cache",
        ),
        Measured(
            name="wheel-slim:size",
            what=f"{what}: the library against what must stay of it",
            values=[library["after"] / must_stay],
            most=1.02,
            note=f"{library['before'] / MIB:.0f} MiB before, {library['after'] / MIB:.1f} MiB after; what "
            "must stay is all that is no bundle, and the code objects of the target without any padding",
        ),
        Measured(
            name="wheel-slim:memory",
            what=f"{what}: memory against the size of the largest library",
            values=[one / library["before"] for one in memory],
            most=2,
            note=f"peak resident memory of the process (VmHWM), {max(memory) / MIB:.0f} MiB",
        ),
    ]


def _peak() -> int:
    """Bytes; of this program alone."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def _zip(folder: Path, out: Path) -> None:
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))


if __name__ == "__main__":
    if sys.argv[1] == "zip":
        _zip(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        from rocwheel.wheels.slim import slim

        slim(Path(sys.argv[2]), [GPU], Path(sys.argv[3]), epoch=0)
        print(json.dumps({"memory": _peak()}))
