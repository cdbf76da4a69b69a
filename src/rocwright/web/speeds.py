"""What was measured of a stack: a chart for each unit, and each lock against the one before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from rocwright.records.model import Figure, StepAt
from rocwright.verify.bench.on_record import newest
from rocwright.verify.bench.statistics import difference, middle, pairs
from rocwright.verify.bench.text import number, where
from rocwright.web.charts import Chart, between, chart, curves_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LockSpeed:
    """A figure of a lock; `change` is against the lock before it, "" where nothing can be compared, `verdict`
    says whether that is more than chance."""

    lock: str
    at: str
    name: str
    told: str
    device: str
    change: str
    verdict: str


def speeds(steps: Sequence[StepAt]) -> list[Chart]:
    """A chart for each unit: the median of each figure on each device, over time."""
    measured = [(attempt, figure) for attempt in steps for figure in attempt.step.measured]
    charts = []
    for unit in dict.fromkeys(figure.unit for _, figure in measured):
        rows = [
            (_called(figure), attempt.at, middle(figure.values))
            for attempt, figure in measured
            if figure.unit == unit
        ]
        ends = between([attempt.at for attempt, figure in measured if figure.unit == unit])
        charts.append(chart(f"Measured: {unit}", curves_of(rows), ends, partial(_with_unit, unit)))
    return [drawn for drawn in charts if drawn is not None]


def _with_unit(unit: str, value: float) -> str:
    return f"{number(value)} {unit}"


def _called(figure: Figure) -> str:
    return f"{figure.name} on {where(figure.device)}"


def by_lock(steps: Sequence[StepAt]) -> list[LockSpeed]:
    """The newest figures of each lock, the newest lock first, against those of the lock before it.

    Locks are ordered by when they were measured first; `steps` are the newest first.
    """
    mine: dict[str, list[StepAt]] = {}
    for attempt in reversed(steps):
        mine.setdefault(attempt.lock, []).insert(0, attempt)
    figures = {lock: newest(attempts) for lock, attempts in mine.items()}
    locks = list(mine)
    rows: list[LockSpeed] = []
    for place in range(len(locks) - 1, -1, -1):
        lock = locks[place]
        previous = figures[locks[place - 1]] if place else ()
        old = {id(new): difference(past, new) for past, new in pairs(previous, figures[lock])}
        for figure in figures[lock]:
            change = old.get(id(figure))
            rows.append(
                LockSpeed(
                    lock=lock,
                    at=mine[lock][0].at,
                    name=figure.name,
                    told=f"{number(middle(figure.values))} {figure.unit}",
                    device=where(figure.device),
                    change="" if change is None else _words(change.worse),
                    verdict="" if change is None or change.certain else "within the spread",
                )
            )
    return rows


def _words(worse: float) -> str:
    return f"{abs(worse):.1%} {'worse' if worse > 0 else 'better'}" if worse else "the same"
