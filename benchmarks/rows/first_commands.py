"""The first commands of PyTorch with ROCm by `build`, against the same typed by hand: all take hours."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from benchmarks.by_hand import by_hand
from benchmarks.measure import Took, paired, processor, seconds
from benchmarks.place import TORCH_HIP, scratch_before
from benchmarks.results import Measured

COMPILED = 300
"""Files, of some 1,600. Commands of other kinds do not count: ninja begins with hundreds that copy a file."""

COMPONENT = "pytorch"
LOG = Path("build", ".ninja_log")
"""Where ninja notes each command that ended, below the tree."""


def measure(runs: int | None) -> Sequence[Measured]:
    """One pair, unless more are asked for."""
    with scratch_before(TORCH_HIP, COMPONENT) as place:
        step = place.step(TORCH_HIP, COMPONENT)

        def built() -> Took:
            place.empty_compiler_cache()
            return place.build_until(TORCH_HIP, step, _enough)

        def typed() -> Took:
            return by_hand(place, step, jobs=_processors(), enough=_enough)

        place.root_of(step)
        pairs = paired(built, typed, runs or 1)
    return [
        Measured(
            name="fresh:pytorch",
            what=f"`build` of PyTorch with ROCm against the same commands typed by hand in bubblewrap: until "
            f"ninja has compiled {COMPILED} files",
            values=pairs.ratios,
            most=1.02,
            note=f"build {seconds(pairs.a)}, by hand {seconds(pairs.b)}; processor time {processor(pairs.a)} "
            f"against {processor(pairs.b)}, what ends them included; {_processors()} jobs; unpacking and "
            "configuring count; an empty compiler cache for each",
        )
    ]


def _enough(tree: Path) -> bool:
    """Whether that many files are compiled: a line of ninja's log ends with what was made, and a hash."""
    try:
        with (tree / LOG).open("rb") as lines:
            return sum(b".o\t" in line for line in lines) >= COMPILED
    except OSError:
        return False


def _processors() -> int:
    return len(os.sched_getaffinity(0))
