"""A wheel whose code is compressed: its targets against a bare inflate, all of it against a bare zstd."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from samples.fetched import real_wheel

from benchmarks.measure import Took, paired, processor, seconds, timed
from benchmarks.place import BIN, bench_home
from benchmarks.results import FOLDER, Measured
from rocwheel.wheels.devicecode.code_objects import fat_binaries
from rocwright.bases.roots import remove_tree

PROJECT, VERSION = "jax-rocm7-pjrt", "0.12.0"
MIB = 1024**2
BARE = FOLDER / "bare_inflate.py"
BARE_ZSTD = FOLDER / "bare_zstd.py"


def measure(runs: int | None) -> Sequence[Measured]:
    """Three rows: the targets against a bare inflate, their memory, and all of it against a bare zstd."""
    folder = bench_home().path / "bench" / "wheel-targets"
    remove_tree(folder)
    folder.mkdir(parents=True)
    wheel, log = real_wheel(PROJECT, VERSION), folder / "log"
    memory: list[float] = []

    def targets() -> Took:
        return timed([BIN / "python", "-m", "rocwright", "wheel", "inspect", "--targets", wheel], log=log)

    def inflate() -> Took:
        return timed([BIN / "python", BARE, wheel], log=log)

    def whole() -> Took:
        return timed([BIN / "python", "-m", "rocwright", "wheel", "inspect", wheel], log=log)

    def unpack() -> Took:
        return timed([BIN / "python", BARE_ZSTD, *packed], log=log)

    try:
        pairs = paired(targets, inflate, runs or 21, warm=1)
        packed = _bundles(wheel, folder)
        of_all = paired(whole, unpack, runs or 5, warm=1)
        for _ in range(3):
            timed([BIN / "python", "-m", __name__, wheel], log=log)
            memory.append(int(log.read_text().split()[-1]) / MIB)
    finally:
        remove_tree(folder)
    what = f"`wheel inspect --targets` of {PROJECT} {VERSION}, a library of 459 MB with 45 compressed bundles"
    return [
        Measured(
            name="wheel-targets:inflate",
            what=f"{what}: time against inflating its members and no more",
            values=pairs.ratios,
            most=1.3,
            note=f"{seconds(pairs.a)} against {seconds(pairs.b)}, processor time {processor(pairs.a)} "
            f"against {processor(pairs.b)}; whole processes",
        ),
        Measured(
            name="wheel-targets:memory",
            what=f"{what}: its memory",
            values=memory,
            unit="MiB",
            most=100,
            note="peak resident memory of the process (VmHWM)",
        ),
        Measured(
            name="wheel-targets:whole",
            what=f"`wheel inspect` of the same wheel, all unpacked: time against zstd of its {len(packed)} "
            "bundles in one thread",
            values=of_all.ratios,
            most=0.65,
            note=f"{seconds(of_all.a)} against {seconds(of_all.b)}, processor time {processor(of_all.a)} "
            f"against {processor(of_all.b)}; whole processes, on {len(os.sched_getaffinity(0))} processors; "
            "inflating the wheel is part of the first alone",
        ),
    ]


def _bundles(wheel: Path, folder: Path) -> list[Path]:
    """The zstd data of each compressed bundle of a wheel, as files."""
    found: list[Path] = []
    for _, source, binary in fat_binaries(wheel, heads=True):
        for one in binary.all_bundles:
            if one.compression == "zstd":
                path = folder / f"{len(found)}.zst"
                path.write_bytes(source.read_at(one.offset + one.header_size, one.size - one.header_size))
                found.append(path)
    return found


if __name__ == "__main__":
    from benchmarks.rows.wheel_inspect import peak
    from rocwright.cli import cli

    cli(["wheel", "inspect", "--targets", str(Path(sys.argv[1]))], standalone_mode=False)
    print(peak())
