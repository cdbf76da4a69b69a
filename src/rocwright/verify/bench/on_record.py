"""The figures that are on record: the newest of a lock, and those of two stacks side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from rocbase.errors import InputError
from rocwright.records.model import BENCH, Figure, StepAt, Which
from rocwright.records.read import Records
from rocwright.verify.bench.statistics import FigureDifference, difference

# Steps that are looked at: the newest.
STEP_LIMIT = 500


def measured(records: Records, which: Which) -> tuple[Figure, ...]:
    """The newest figure of each kind, device, machine and model, among the runs asked for."""
    return newest(records.steps(which_bench(which), limit=STEP_LIMIT))


def which_bench(which: Which) -> Which:
    """The same runs, of those that measured."""
    return replace(which, command=BENCH)


def newest(steps: Iterable[StepAt]) -> tuple[Figure, ...]:
    """The first figure of each kind, device, machine and model, of steps that are sorted so."""
    figures: dict[tuple[str, ...], Figure] = {}
    for entry in steps:
        for figure in entry.step.measured:
            figures.setdefault(
                (figure.name, figure.unit, figure.device, figure.machine, figure.model), figure
            )
    return tuple(figures.values())


def figures_of(records: Records, stack: str, gpu: str) -> tuple[Figure, ...]:
    """The newest figures of a stack for a GPU. Raises InputError where there are none."""
    figures = measured(records, Which(stack=stack, gpu=gpu))
    if not figures:
        raise InputError(
            f"no figures of {stack} for {gpu} are on record",
            cause="it was not measured, or the records are those of another machine",
            next_step=f"rocwright bench {stack} --gpu {gpu}",
        )
    return figures


class SideBySide(NamedTuple):
    """One figure of two stacks, each on the device where it was measured."""

    first: Figure
    second: Figure
    change: FigureDifference


def side_by_side(first: Sequence[Figure], second: Sequence[Figure]) -> list[SideBySide]:
    """Figures of one name, unit, machine and model, whatever the device: each against each."""
    return [
        SideBySide(mine, theirs, difference(mine, theirs))
        for mine in first
        for theirs in second
        if (mine.name, mine.unit, mine.machine, mine.model)
        == (theirs.name, theirs.unit, theirs.machine, theirs.model)
    ]
