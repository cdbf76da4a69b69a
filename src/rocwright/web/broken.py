"""What is broken now: since when, by which change, and whether it is known; what broke alike is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rocwright.catalog.issue import Issue, the_issues
from rocwright.cycle.model import CycleTold
from rocwright.cycle.stands import Place
from rocwright.records.model import BISECT, Cell, Run, Which
from rocwright.records.read import Records

BROKEN = ("failed", "killed")

MOST = 40
"""Cells of which it is looked up since when; a machine on which more are broken has one cause, or many."""

MOST_RUNS = 50
"""Runs back to which the first failure is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """Cells of a stack and base whose newest run failed in the same way: `cell` is one of them, `gpus` are
    those of all. `since` is when the first such run began, `good` the last that went well, None where there
    was none; `changes` is what differs in versions between the two, `culprit` what a cycle found out."""

    cell: Cell
    gpus: tuple[str, ...]
    outcome: str
    since: str
    good: Run | None
    changes: tuple[str, ...]
    issue: Issue | None
    culprit: str


class _Told(NamedTuple):
    cell: Cell
    since: str
    good: Run | None
    changes: tuple[str, ...]
    culprit: str

    @property
    def alike(self) -> tuple[object, ...]:
        cell = self.cell
        where, how = (cell.stack, cell.base, cell.variant), (cell.outcome, cell.failure, cell.issue)
        return where, how, self.changes, self.culprit


def broken(records: Records, cells: Iterable[Cell], told: CycleTold | None = None) -> list[Broken]:
    """The broken of these cells, what broke last first; the last cycle (`told`) may know a culprit."""
    issues, culprits = the_issues()[0], dict(_culprits(told))
    alike: dict[object, list[_Told]] = {}
    bad = sorted((one for one in cells if one.outcome in BROKEN), key=lambda one: one.at, reverse=True)
    for at, cell in enumerate(bad):
        since, good, changes = _before(records, cell) if at < MOST else (cell.at, None, ())
        one = _Told(
            cell, since, good, changes, culprits.get(Place(cell.stack, cell.gpu, cell.base, cell.variant), "")
        )
        alike.setdefault(one.alike, []).append(one)
    return [
        Broken(
            cell=found[0].cell,
            gpus=tuple(sorted((one.cell.gpu for one in found), key=lambda name: (len(name), name))),
            outcome=found[0].cell.outcome,
            since=min(one.since for one in found),
            good=found[0].good,
            changes=found[0].changes,
            issue=issues.get(found[0].cell.issue),
            culprit=found[0].culprit,
        )
        for found in alike.values()
    ]


def _before(records: Records, cell: Cell) -> tuple[str, Run | None, tuple[str, ...]]:
    """Since when a cell is broken, its last run that went well, and what changed from that to the first that
    failed."""
    which = Which(stack=cell.stack, gpu=cell.gpu, base=cell.base, variant=cell.variant)
    runs = records.runs(which, limit=MOST_RUNS, steps=False)
    first, good = None, None
    for run in runs:
        if run.origin.startswith(BISECT):
            continue
        # what was built, and then found wrong, was never good
        found_wrong = first is not None and (first.command, first.lock) == ("verify", run.lock)
        if run.outcome in ("built", "verified") and not found_wrong:
            good = run
            break
        if run.outcome in BROKEN:
            first = run
    if first is None:
        return cell.at, good, ()
    return first.started, good, tuple(_changes(good, first)) if good else ()


def _changes(good: Run, bad: Run) -> Iterator[str]:
    for name, version in bad.versions.items():
        before = good.versions.get(name)
        if before != version:
            yield f"{name} {before} → {version}" if before else f"{name} {version} (new)"
    yield from (f"{name} (gone)" for name in good.versions if name not in bad.versions)


def culprit_of(says: Sequence[str]) -> str:
    """What a bisection found, in a line, out of all that it says."""
    heads = [at for at, line in enumerate(says) if line.startswith("culprit")]
    found = [line for line in says[heads[0] + 1 :] if line.startswith(" ")] if heads else says[:1]
    return " · ".join(line.strip() for line in found)


def _culprits(told: CycleTold | None) -> Iterator[tuple[Place, str]]:
    for row in told.rows if told else ():
        if row.culprit is not None and row.culprit.says:
            for gpu in row.request.gpu:
                asked = row.request
                yield Place(asked.stack, gpu, asked.base, asked.variant), culprit_of(row.culprit.says)
