"""Looking into a large library and a large wheel, against LLVM's tools, and against inflating and no more."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from samples.fetched import real_wheel

from benchmarks.measure import Pairs, Took, middle, paired, processor, seconds, timed
from benchmarks.place import BIN, bench_home
from benchmarks.results import FOLDER, Measured
from rocwheel.wheels.devicecode.gpu import machines
from rocwheel_samples.fatbin import entry_id, gpu_elf, linked_elf, plain_bundle
from rocwheel_samples.llvm import LLVM, llvm
from rocwright.sources.bases.roots import remove_tree

PROJECT, VERSION = "onnxruntime-rocm", "1.22.2.post3"
BUNDLES, SIZE = 95, 500_000_000
MIB = 1024**2
# What the readers import first of the standard library.
OF_PYTHON = ("dataclasses", "pathlib", "re", "typing")

TARGETS = ("gfx1030", "gfx1100", "gfx1101", "gfx1200", "gfx1201", "gfx908", "gfx90a", "gfx942")
BARE = FOLDER / "bare_inflate.py"


def measure(runs: int | None) -> Sequence[Measured]:
    """Four rows: a library's speed and memory, a wheel against tools and against a bare inflate."""
    folder = bench_home().path / "bench" / "wheel-inspect"
    remove_tree(folder)
    folder.mkdir(parents=True)
    try:
        return [*_library(folder, runs or 7), *_wheel(folder, runs or 7)]
    finally:
        remove_tree(folder)


def _library(folder: Path, runs: int) -> list[Measured]:
    library, log, dumped = folder / "lib.so", folder / "log", folder / "dumped"
    library.write_bytes(_synthesised())
    linked = dumped / library.name
    memory: list[float] = []

    def inspect() -> Took:
        return timed(_inspect(library), log=log)

    def dump() -> Took:
        # it writes what it finds beside the library
        remove_tree(dumped)
        dumped.mkdir()
        linked.hardlink_to(library)
        os.sync()
        return timed([llvm("llvm-objdump"), "--offloading", linked.name], log=log, cwd=dumped)

    def start() -> Took:
        return timed([BIN / "python", "-c", f"import {', '.join(OF_PYTHON)}"], log=log)

    pairs = paired(inspect, dump, runs, warm=1)
    bound = paired(start, dump, runs, warm=1)
    for _ in range(3):
        timed([BIN / "python", "-m", __name__, library], log=log)
        memory.append(int(log.read_text().split()[-1]) / MIB)
    remove_tree(dumped)
    what = (
        f"`wheel inspect` of a {SIZE / 1e6:.0f} MB library with {BUNDLES} bundles of {len(TARGETS)} targets"
    )
    return [
        _faster(
            "wheel-inspect:library",
            f"{what}: times as fast as llvm-objdump --offloading",
            pairs,
            30,
            f"llvm-objdump {LLVM} cannot list without writing all out; file in the page cache; "
            f"{middle(_times(bound)):.1f} x is the bound: Python takes {seconds(bound.a)} to start and to "
            f"import {', '.join(OF_PYTHON)}",
        ),
        Measured(
            name="wheel-inspect:memory",
            what=f"{what}: its memory",
            values=memory,
            unit="MiB",
            most=100,
            note="peak resident memory of the process (VmHWM)",
        ),
    ]


def _wheel(folder: Path, runs: int) -> list[Measured]:
    wheel, log, unpacked = real_wheel(PROJECT, VERSION), folder / "log", folder / "unpacked"

    def inspect() -> Took:
        return timed(_inspect(wheel), log=log)

    def tools() -> Took:
        remove_tree(unpacked)
        os.sync()
        words = f"""
            unzip -q {shlex.quote(str(wheel))} -d {shlex.quote(str(unpacked))}
            find {shlex.quote(str(unpacked))} -name '*.so*' | while read -r file; do
                {llvm("llvm-readelf")} -SW "$file"
                {llvm("llvm-objdump")} --offloading "$file"
            done
        """
        return timed(["/bin/sh", "-eu", "-c", words], log=log)

    def inflate() -> Took:
        return timed([BIN / "python", BARE, wheel], log=log)

    against_tools = paired(inspect, tools, runs, warm=1)
    remove_tree(unpacked)
    against_inflate = paired(inspect, inflate, 3 * runs, warm=1)
    what = f"`wheel inspect` of {PROJECT} {VERSION}, compressed as it is"
    return [
        _faster(
            "wheel-inspect:wheel",
            f"{what}: times as fast as unzip to disk, then llvm-readelf and llvm-objdump --offloading",
            against_tools,
            3,
            "wheel in the page cache",
        ),
        Measured(
            name="wheel-inspect:inflate",
            what=f"{what}: time against inflating its members and no more",
            values=against_inflate.ratios,
            most=1.1,
            note=f"{seconds(against_inflate.a)} against {seconds(against_inflate.b)}, processor time "
            f"{processor(against_inflate.a)} against {processor(against_inflate.b)}; whole processes; "
            "the bare inflate is Python's zipfile for the directory and isal for the data, no checksums",
        ),
    ]


def _faster(name: str, what: str, pairs: Pairs, least: float, note: str) -> Measured:
    return Measured(
        name=name,
        what=what,
        values=_times(pairs),
        least=least,
        note=f"{seconds(pairs.a)} against {seconds(pairs.b)}, processor time {processor(pairs.a)} against "
        f"{processor(pairs.b)}; whole commands; {note}",
    )


def _times(pairs: Pairs) -> list[float]:
    """How often A goes into B, pair by pair."""
    return [b.wall / a.wall for a, b in zip(pairs.a, pairs.b, strict=True)]


def _inspect(path: Path) -> list[str | Path]:
    return [BIN / "python", "-m", "rocwright", "wheel", "inspect", path]


def _synthesised() -> bytes:
    """A library like a real one: bundles of code objects of different sizes that do not compress."""
    numbers = {name: number for number, name in machines().items()}
    each = SIZE // (BUNDLES * len(TARGETS))
    noise = os.urandom(2 * each)
    bundles = []
    for bundle in range(BUNDLES):
        size = each + (bundle - BUNDLES // 2) * each // BUNDLES
        code = [(entry_id(name), gpu_elf(numbers[name], body=noise[:size])) for name in TARGETS]
        bundles.append(plain_bundle(code))
    return linked_elf(bundles)


def peak() -> int:
    """Bytes; of this program alone."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    from rocwright.cli import cli

    cli(["wheel", "inspect", sys.argv[1]], standalone_mode=False)
    print(peak())
