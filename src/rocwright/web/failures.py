"""What is broken now: since when, by which change, and whether it is known; what broke alike is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rocwright.catalog.issue import Issue, the_issues
from rocwright.cycle.model import CycleTold
from rocwright.cycle.stands import ChannelPlace
from rocwright.records.model import BISECT, Cell, Run, Which
from rocwright.records.read import Records

BROKEN = ("failed", "killed")

MOST = 24
"""Cells of which it is looked up since when; a machine on which more are broken has one cause, or many."""

MOST_RUNS = 30
"""Runs back to which the first failure is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """Cells of a stack and base whose newest run failed in the same way: `cell` is one of them, `gpus` are
    those of all. `since` is when the first such run began, `says` what the newest one says, `good` the last
    that went well, None where there was none; `changes` is what differs in versions between the two,
    `culprit` what a cycle found out."""

    cell: Cell
    gpus: tuple[str, ...]
    since: str
    says: str
    good: Run | None
    changes: tuple[str, ...]
    issue: Issue | None
    culprit: str


class Begin(NamedTuple):
    """When what is broken began: the first failure, the run that went well before it, what changed between
    the two; and what the newest failure says."""

    since: str
    says: str = ""
    good: Run | None = None
    changes: tuple[str, ...] = ()


def broken(
    records: Records,
    cells: Iterable[Cell],
    told: CycleTold | None = None,
    known: dict[str, Begin] | None = None,
) -> list[Broken]:
    """The broken of these cells, what broke last first; the last cycle (`told`) may know a culprit. `known`
    keeps from one time to the next what was looked up, by the run that failed."""
    issues, culprits = the_issues()[0], dict(_culprits(told))
    bad = sorted((one for one in cells if one.outcome in BROKEN), key=lambda one: one.at, reverse=True)
    before = known if known is not None else {}
    begins = {one.run: before.get(one.run) or _begin(records, one) for one in bad[:MOST]}
    before.clear()
    before.update(begins)
    alike: dict[object, list[Cell]] = {}
    for cell in bad:
        begin = begins.get(cell.run) or Begin(cell.at)
        where, how = (cell.stack, cell.base, cell.variant), (cell.outcome, cell.failure, cell.issue)
        alike.setdefault((where, how, begin.changes, culprits.get(_place(cell), "")), []).append(cell)
    groups = [(found, begins.get(found[0].run) or Begin(found[0].at)) for found in alike.values()]
    return [
        Broken(
            cell=found[0],
            gpus=tuple(sorted((one.gpu for one in found), key=lambda name: (len(name), name))),
            since=min((begins.get(one.run) or Begin(one.at)).since for one in found),
            says=begin.says,
            good=begin.good,
            changes=begin.changes,
            issue=issues.get(found[0].issue),
            culprit=culprits.get(_place(found[0]), ""),
        )
        for found, begin in groups
    ]


def _place(cell: Cell) -> ChannelPlace:
    return ChannelPlace(cell.stack, cell.gpu, cell.base, cell.variant)


def _begin(records: Records, cell: Cell) -> Begin:
    which = Which(stack=cell.stack, gpu=cell.gpu, base=cell.base, variant=cell.variant)
    first, good = None, None
    for run in records.runs(which, limit=MOST_RUNS, steps=False):
        if run.origin.startswith(BISECT):
            continue
        # what was built, and then found wrong, was never good
        found_wrong = first is not None and (first.command, first.lock) == ("verify", run.lock)
        if run.outcome in ("built", "verified") and not found_wrong:
            good = run
            break
        if run.outcome in BROKEN:
            first = run
    newest = records.run(cell.run)
    error = next((one.error for one in newest.steps if one.outcome == "failed"), {}) if newest else {}
    says = error.get("cause") or error.get("message", "")
    if first is None:
        return Begin(cell.at, says, good)
    return Begin(first.started, says, good, tuple(_changes(good, first)) if good else ())


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


def _culprits(told: CycleTold | None) -> Iterator[tuple[ChannelPlace, str]]:
    for row in told.rows if told else ():
        if row.culprit is not None and row.culprit.says:
            for gpu in row.request.gpu:
                asked = row.request
                yield ChannelPlace(asked.stack, gpu, asked.base, asked.variant), culprit_of(row.culprit.says)
