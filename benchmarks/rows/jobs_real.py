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
# Each takes PyTorch's headers in: that is most of its memory (410 to 740 MiB, measured) and time.
PATTERNS = ("vision.cpp", "ops/**/*.cpp")

# As many for each of two processors at least: the first few teach what the others come to.
A_PROCESSOR = 12

# Two at once fit, and hardly so; three do not.
LIMIT = 1580 * MIB

RECKONED = 740 * MIB
FLAGS = "-std=c++17 -O2 -fPIC -Itorchvision/csrc -I/usr/include/torch/csrc/api/include"


def measure(runs: int | None) -> Sequence[Measured]:
    """One row."""
    with scratch(TORCH) as place:
        return [_measure(place, runs or 2)]


def _measure(place: Scratch, runs: int) -> Measured:
    step = place.step(TORCH, "torchvision")
    folder = place.path / "real" / "work"
    files = lay_out(place.input_of(step, "src"), folder)
    shop = Shop(engine=sandbox.pick(ENGINE, bench_home().probes), folder=folder, root=place.root_of(step))
    cores = os.cpu_count() or 1
    race = Race(
        shop=shop,
        home=place.home,
        clean=lambda: clean(folder),
        limit=LIMIT,
        reckoned=RECKONED,
        most=2 * cores,
        fixed_words="ninja -j{jobs}",
        served_words="ninja -j$JOBS",
    )
    told = race.run(range(1, 2 * cores + 1), runs)
    return Measured(
        name="jobs:real",
        what=f"{files} sources of torchvision compiled under {LIMIT // MIB} MiB, `ninja` under the job "
        f"server, which tells it a number of at most {2 * cores} and watches, with nothing learnt, over the "
        "best fixed -j",
        values=told.ratios,
        most=1.1,
        note=f"{sum(map(bool, told.kills))} of {runs} runs under the server were killed; {told.note}",
    )


def lay_out(tree: Path, folder: Path) -> int:
    """The sources and a build.ninja; how many there are."""
    unpack(tree, folder, filename=tree.name, wrapped=False)
    found = sorted(path for pattern in PATTERNS for path in folder.glob(f"torchvision/csrc/{pattern}"))
    if len(found) < 2 * A_PROCESSOR:
        raise BenchError(f"torchvision has only {len(found)} sources in {', '.join(PATTERNS)}")
    edges = "".join(f"build {at}.o: cc {path.relative_to(folder)}\n" for at, path in enumerate(found))
    (folder / "build.ninja").write_text(f"rule cc\n  command = g++ {FLAGS} -c $in -o $out\n{edges}")
    sandbox.make_writable(folder)
    return len(found)
