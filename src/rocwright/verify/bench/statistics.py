"""Figures of several runs: their middle, their spread, and whether one is worse than another. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rocwright.records.model import Figure

# A difference within so many spreads of the runs is none.
SPREADS = 3

# With fewer runs the spread says too little for a channel to go by it.
LEAST_RUNS = 5


def middle(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)


def spread(values: Sequence[float]) -> float:
    """The standard deviation of the runs, in the figure's unit; 0 where there is one run."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


class FigureDifference(NamedTuple):
    """What two figures of one thing differ by.

    `worse` is by what part of the old one the new one is worse, less than 0 where it is better. `certain`:
    they differ by more than `SPREADS` of the larger of both spreads.
    """

    worse: float
    certain: bool

    def beyond(self, percent: float) -> bool:
        """Whether it is worse by more than so many percent, and that is no chance."""
        return self.certain and self.worse * 100 > percent


def difference(old: Figure, new: Figure) -> FigureDifference:
    """How a figure changed; by its own word more of it is better, or less."""
    old_middle, new_middle = middle(old.values), middle(new.values)
    loss = old_middle - new_middle if new.better == "higher" else new_middle - old_middle
    noise = max(spread(old.values), spread(new.values))
    return FigureDifference(loss / old_middle, abs(loss) > SPREADS * noise)


def comparable(old: Figure, new: Figure) -> bool:
    """Whether both say the same of the same: the device, the machine and the model too."""
    return _identity(old) == _identity(new)


def _identity(figure: Figure) -> tuple[str, ...]:
    return figure.name, figure.unit, figure.better, figure.device, figure.model, figure.machine


def pairs(old: Iterable[Figure], new: Iterable[Figure]) -> list[tuple[Figure, Figure]]:
    """The figures of two locks that can be compared, each new one with the old one."""
    by_identity = {_identity(figure): figure for figure in old}
    return [(by_identity[_identity(figure)], figure) for figure in new if _identity(figure) in by_identity]


def slower(old: Iterable[Figure], new: Iterable[Figure], percent: float) -> list[str]:
    """Which figures are worse by more than so many percent and by more than chance, in words."""
    return [
        f"{figure.name} is {change.worse * 100:.1f} % worse on {figure.device}"
        for old_figure, figure in pairs(old, new)
        if (change := difference(old_figure, figure)).beyond(percent)
    ]
