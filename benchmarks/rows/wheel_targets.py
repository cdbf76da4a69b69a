"""The targets of a wheel whose code is compressed, against inflating the wheel and no more."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from samples.fetched import real_wheel

from benchmarks.measure import Took, paired, processor, seconds, timed
from benchmarks.place import BIN, bench_home
from benchmarks.results import FOLDER, Measured
from rocwright.bases.roots import remove_tree

PROJECT, VERSION = "jax-rocm7-pjrt", "0.12.0"
MIB = 1024**2
BARE = FOLDER / "bare_inflate.py"


def measure(runs: int | None) -> Sequence[Measured]:
    """Two rows: time against a bare inflate, and memory."""
    folder = bench_home().path / "bench" / "wheel-targets"
    remove_tree(folder)
    folder.mkdir(parents=True)
    wheel, log = real_wheel(PROJECT, VERSION), folder / "log"
    memory: list[float] = []

    def targets() -> Took:
        return timed([BIN / "python", "-m", "rocwright", "wheel", "inspect", "--targets", wheel], log=log)

    def inflate() -> Took:
        return timed([BIN / "python", BARE, wheel], log=log)

    try:
        pairs = paired(targets, inflate, runs or 21, warm=1)
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
    ]


if __name__ == "__main__":
    from benchmarks.rows.wheel_inspect import peak
    from rocwright.cli import cli

    cli(["wheel", "inspect", "--targets", str(Path(sys.argv[1]))], standalone_mode=False)
    print(peak())
