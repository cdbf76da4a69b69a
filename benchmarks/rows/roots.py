"""Looking whether an unpacked root is as it was unpacked, and `build` with nothing to do."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import zstandard

from benchmarks.measure import BenchError, middle, processor, seconds
from benchmarks.place import GFX_SMOKE, bare, scratch
from benchmarks.results import Measured
from rocwright.bases.roots import changed, unpacked_root
from rocwright.store.local import LocalStore

FILES, SIZE = 30_000, 20 * 1024
"""A root of 600 MB."""


def measure(runs: int | None) -> Sequence[Measured]:
    """Three rows: the look at each use, the comparison byte by byte, and a build with nothing to do."""
    return [*_roots(runs or 11), _noop(runs or 11)]


def _roots(runs: int) -> Iterator[Measured]:
    with bare() as place:
        packed = _root(place.path)
        store = LocalStore(place.home.store)
        sha256, _ = store.put_file(packed, move=True)
        root = unpacked_root(store, sha256, place.home.roots, lambda _: None)
        looks, cpu = _repeated(lambda: changed(store, sha256, root), runs)
        reads, _ = _repeated(lambda: changed(store, sha256, root, read_all=True), 3)
    what = f"an unpacked root of {FILES:,} files and {FILES * SIZE / 1e6:.0f} MB"
    yield Measured(
        name="roots:look",
        what=f"whether {what} is as it was unpacked, at each use",
        values=looks,
        unit="s",
        most=0.3,
        note=f"processor time {middle(cpu):.2f} s; names and metadata in the page cache",
    )
    yield Measured(
        name="roots:read",
        what=f"the same byte by byte, with its archive (`store verify`, a home that was copied): {what}",
        values=reads,
        unit="s",
        note="for one processor",
    )


def _noop(runs: int) -> Measured:
    with scratch(GFX_SMOKE) as place:
        place.build(GFX_SMOKE)
        took = [place.build(GFX_SMOKE) for _ in range(runs)]
        if "nothing to do" not in place.log.read_text():
            raise BenchError("gfx-smoke: there was something to do")
    return Measured(
        name="noop:build",
        what="`rocwright build` with nothing to do, as a process",
        values=[one.wall for one in took],
        unit="s",
        most=0.3,
        note=f"{seconds(took)}, processor time {processor(took)}; gfx-smoke, no root is looked at",
    )


def _repeated(look: Callable[[], str], runs: int) -> tuple[list[float], list[float]]:
    walls, cpus = [], []
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        if found := look():
            raise BenchError(f"the root was changed: {found}")
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return walls, cpus


def _root(folder: Path) -> Path:
    """The archive of a root with as many files as one with compilers, in folders of 30."""
    made, packed = folder / "made", folder / "root.tar.zst"
    for number in range(FILES):
        path = made / f"usr/lib/{number // 900}/{number // 30}/file-{number}"
        if number % 30 == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(SIZE))
    words = ["tar", "--create", "--sort=name", "--format=posix", "--numeric-owner"]
    words += ["--directory", str(made), "."]
    with (
        packed.open("wb") as file,
        zstandard.ZstdCompressor(level=1).stream_writer(file) as stream,
        subprocess.Popen(words, stdout=subprocess.PIPE) as running,
    ):
        assert running.stdout is not None
        while chunk := running.stdout.read(2**20):
            stream.write(chunk)
    return packed
