"""Real C++ under a tight limit: sources of torchvision against PyTorch's headers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from benchmarks.crowd import Race, Shop, clean
from benchmarks.measure import BenchError
from benchmarks.place import ENGINE, TORCH, Scratch, bench_home, scratch
from benchmarks.results import Measured
from rocwright import sandbox
from rocwright.sources.archive import unpack

MIB = 1024**2
FILES = ("vision.cpp", "ops/nms.cpp", "ops/cpu/nms_kernel.cpp", "ops/quantized/cpu/qnms_kernel.cpp")
"""Each takes PyTorch's headers in: that is most of its memory and time."""

LIMIT = 1000 * MIB
"""Two at once fit, and hardly so; three do not."""

RECKONED = 500 * MIB
FLAGS = "-std=c++17 -O2 -fPIC -Itorchvision/csrc -I/usr/include/torch/csrc/api/include"


def measure(runs: int | None) -> Sequence[Measured]:
    """One row."""
    with scratch(TORCH) as place:
        return [_measure(place, runs or 2)]


def _measure(place: Scratch, runs: int) -> Measured:
    step = place.step(TORCH, "torchvision")
    folder = place.path / "real" / "work"
    lay_out(place.input_of(step, "src"), folder)
    shop = Shop(engine=sandbox.pick(ENGINE, bench_home().probes), folder=folder, root=place.root_of(step))
    cores = os.cpu_count() or 1
    race = Race(
        shop=shop,
        home=place.home,
        clean=lambda: clean(folder),
        limit=LIMIT,
        reckoned=RECKONED,
        most=2 * cores,
    )
    told = race.run(range(1, 2 * cores + 1), runs)
    return Measured(
        name="jobs:real",
        what=f"{len(FILES)} sources of torchvision compiled under {LIMIT // MIB} MiB, `make` under the job "
        f"server with up to {2 * cores} jobs and nothing learnt, over the best fixed -j",
        values=told.ratios,
        most=1.1,
        note=f"{sum(map(bool, told.kills))} of {runs} runs under the server were killed; {told.note}",
    )


def lay_out(tree: Path, folder: Path) -> None:
    """The sources and a Makefile."""
    unpack(tree, folder, filename=tree.name, wrapped=False)
    missing = [name for name in FILES if not (folder / "torchvision" / "csrc" / name).exists()]
    if missing:
        raise BenchError(f"torchvision has no {', '.join(missing)} any more")
    rules = "".join(
        f"{at}.o:\n\tg++ {FLAGS} -c torchvision/csrc/{name} -o {at}.o\n" for at, name in enumerate(FILES)
    )
    every = " ".join(f"{at}.o" for at in range(len(FILES)))
    (folder / "Makefile").write_text(f"all: {every}\n{rules}")
    sandbox.make_writable(folder)
