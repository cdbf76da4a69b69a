"""What is broken now: since when, by which change, and whether it is known; what broke alike is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rocwright.catalog.issue import Issue, the_issues
from rocwright.follow.cycle.model import CycleTold
from rocwright.follow.cycle.stands import ChannelPlace
from rocwright.records.model import BISECT, Cell, Run, Which
from rocwright.records.read import Records

BROKEN = ("failed", "killed")

# Cells of which it is looked up since when; a machine on which more are broken has one cause, or many.
CELL_LIMIT = 24

# Runs back to which the first failure is looked for.
MOST_RUNS = 30


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
    cycle: CycleTold | None = None,
    cache: dict[str, Begin] | None = None,
) -> list[Broken]:
    """The broken of these cells, what broke last first; the last `cycle` may know a culprit. `cache`
    keeps from one time to the next what was looked up, by the run that failed."""
    issues, culprits = the_issues()[0], dict(_culprits(cycle))
    bad = sorted((cell for cell in cells if cell.outcome in BROKEN), key=lambda cell: cell.at, reverse=True)
    cached = cache if cache is not None else {}
    begins = {cell.run: cached.get(cell.run) or _begin(records, cell) for cell in bad[:CELL_LIMIT]}
    cached.clear()
    cached.update(begins)
    alike: dict[object, list[Cell]] = {}
    for cell in bad:
        begin = begins.get(cell.run) or Begin(cell.at)
        place, how = (cell.stack, cell.base, cell.variant), (cell.outcome, cell.failure, cell.issue)
        alike.setdefault((place, how, begin.changes, culprits.get(_place(cell), "")), []).append(cell)
    groups = [(group, begins.get(group[0].run) or Begin(group[0].at)) for group in alike.values()]
    return [
        Broken(
            cell=group[0],
            gpus=tuple(sorted((cell.gpu for cell in group), key=lambda name: (len(name), name))),
            since=min((begins.get(cell.run) or Begin(cell.at)).since for cell in group),
            says=begin.says,
            good=begin.good,
            changes=begin.changes,
            issue=issues.get(group[0].issue),
            culprit=culprits.get(_place(group[0]), ""),
        )
        for group, begin in groups
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
    error = next((step.error for step in newest.steps if step.outcome == "failed"), {}) if newest else {}
    says = error.get("cause") or error.get("message", "")
    if first is None:
        return Begin(cell.at, says, good)
    return Begin(first.started, says, good, tuple(_changes(good, first)) if good else ())


def _changes(good: Run, bad: Run) -> Iterator[str]:
    for name, version in bad.versions.items():
        previous = good.versions.get(name)
        if previous != version:
            yield f"{name} {previous} → {version}" if previous else f"{name} {version} (new)"
    yield from (f"{name} (gone)" for name in good.versions if name not in bad.versions)


def culprit_of(says: Sequence[str]) -> str:
    """What a bisection found, in a line, out of all that it says."""
    heads = [index for index, line in enumerate(says) if line.startswith("culprit")]
    details = [line for line in says[heads[0] + 1 :] if line.startswith(" ")] if heads else says[:1]
    return " · ".join(line.strip() for line in details)


def _culprits(cycle: CycleTold | None) -> Iterator[tuple[ChannelPlace, str]]:
    for row in cycle.rows if cycle else ():
        if row.culprit is not None and row.culprit.says:
            for gpu in row.request.gpu:
                request = row.request
                yield (
                    ChannelPlace(request.stack, gpu, request.base, request.variant),
                    culprit_of(row.culprit.says),
                )
