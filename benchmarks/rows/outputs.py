"""Taking a step's output out of its folder and into the store, against how it was opened before."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from io import BufferedReader
from pathlib import Path

from benchmarks.measure import Pairs, Took, paired, processor, seconds
from benchmarks.place import bench_home
from benchmarks.results import Measured
from rocwheel.files.atomic import CHUNK
from rocwright.bases.roots import remove_tree
from rocwright.execution.collect import collect
from rocwright.model.steps import OutputSpec
from rocwright.store.local import LocalStore
from rocwright.untrusted import Untrusted

MIB = 1024**2
SIZE = 512 * MIB
SPEC = OutputSpec(name="wheel", pattern="torch-*.whl")
NAME = "torch-2.9.whl"


def measure(runs: int | None) -> Sequence[Measured]:
    """Two rows: into the store, and read."""
    folder = bench_home().path / "bench" / "outputs"
    remove_tree(folder)
    (folder / "out").mkdir(parents=True)
    try:
        return _measure(folder, runs or 15)
    finally:
        remove_tree(folder)


def _measure(folder: Path, runs: int) -> list[Measured]:
    store = LocalStore(folder / "store")
    out, taken = folder / "out", folder / "taken"
    with (out / NAME).open("wb") as file:
        for _ in range(0, SIZE, 16 * CHUNK):
            file.write(os.urandom(16 * CHUNK))
    left = Untrusted(out, "torch")

    def by_door() -> str:
        return store.put_file(collect(left, [SPEC], taken)["wheel"], move=True)[0]

    def as_before() -> str:
        [path] = [path for path in out.glob(SPEC.pattern) if path.is_file() and not path.is_symlink()]
        return store.put_file(path, move=True)[0]

    def stored(put: Callable[[], str]) -> Took:
        os.sync()
        took, digest = _timed(put)
        # back again, as a step leaves it
        (store.path / "blobs" / digest[:2] / digest).rename(out / NAME)
        remove_tree(taken)
        return took

    put = paired(lambda: stored(by_door), lambda: stored(as_before), runs, warm=1)
    read = paired(
        lambda: _timed(lambda: _hash(left.open(NAME)))[0],
        lambda: _timed(lambda: _hash((out / NAME).open("rb")))[0],
        runs,
        warm=1,
    )
    what = f"an output of {SIZE // MIB} MiB"
    return [
        _speed("outputs:take", f"taking {what} into the store", put),
        _speed("outputs:read", f"reading {what}", read),
    ]


def _speed(name: str, what: str, pairs: Pairs) -> Measured:
    return Measured(
        name=name,
        what=f"{what} by rocwright.untrusted: speed as a part of the speed of opening it as it is",
        values=[b.wall / a.wall for a, b in zip(pairs.a, pairs.b, strict=True)],
        least=0.95,
        note=f"{seconds(pairs.a)} against {seconds(pairs.b)}; processor time {processor(pairs.a)} against "
        f"{processor(pairs.b)}; incompressible bytes in the page cache, within one process",
    )


def _timed(run: Callable[[], str]) -> tuple[Took, str]:
    begun, before = time.perf_counter(), time.process_time()
    told = run()
    return Took(time.perf_counter() - begun, time.process_time() - before), told


def _hash(file: BufferedReader) -> str:
    with file:
        return hashlib.file_digest(file, "sha256").hexdigest()
