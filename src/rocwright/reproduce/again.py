"""Artifacts built again from the same inputs, in another folder, later, with another number of jobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rocwright.bases.roots import remove_tree
from rocwright.build.progress import Progress
from rocwright.build.runs import UnderWay
from rocwright.build.scheduler import Options, check_room, run_steps
from rocwright.errors import InputError
from rocwright.flow import Project, expected
from rocwright.home import Home
from rocwright.models import Frozen
from rocwright.plan.decide import Decision, State
from rocwright.plan.model import Plan, Step
from rocwright.reproduce.differ import differences
from rocwright.resolve.model import Request
from rocwright.store.local import LocalStore
from rocwright.store.model import Output, Record

LENT = frozenset({"fetch", "base"})
"""Kinds of steps whose outputs are taken as they are, unless root file systems are to be made again too."""


class Compared(Frozen):
    """An output and what came of it the second time; `says` tells what differs, in lines."""

    step: str
    filename: str
    before: str
    after: str
    says: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        return self.before == self.after


class Reproduced(Frozen):
    """What was built again: how it was the first time and the second, and every output compared."""

    jobs: tuple[int, int]
    engines: tuple[str, str]
    folders: tuple[str, str]
    started: tuple[str, str]
    outputs: tuple[Compared, ...]

    @property
    def same(self) -> bool:
        return all(one.same for one in self.outputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """`jobs` and `engine`: none is one job more or less than before, and the engine of before. `roots`: root
    file systems are made again too. `keep`: the second build's folder stays."""

    jobs: int | None = None
    engine: str | None = None
    roots: bool = False
    keep: bool = False


def reproduce(
    project: Project, plan: Plan, how: How, progress: Progress, say: Callable[[str], None]
) -> Reproduced:
    """Build the artifacts of a plan, which are in the store, once more elsewhere, and compare.

    Raises InputError where one of them was never built, and what building raises.
    """
    store = project.store
    lent_kinds = {"fetch"} if how.roots else LENT
    needed = _needed(plan, lent_kinds)
    first = {step.key: _record(store, step) for step in needed}
    lent = [step for step in needed if step.kind in lent_kinds]
    again = [step for step in needed if step not in lent]
    before = max((first[step.key].jobs for step in again), default=1)
    folder = project.home.path / "reproduce" / f"{os.getpid()}"
    other = replace(project, home=Home(folder))
    try:
        _lend(project, other, [first[step.key] for step in lent], how)
        decisions = [
            Decision(step=step, state=State.RUN if step in again else State.CACHED) for step in needed
        ]
        check_room(decisions, other.home)
        under_way = UnderWay("reproduce", project.request, project.home.runs)
        jobs = how.jobs or (before - 1 or 2)
        engine = how.engine or next((one.engine for one in first.values() if one.engine), None)
        times = expected(project, decisions)
        options = Options(jobs=jobs, engine=engine)
        outcome = run_steps(decisions, other.store, other.home, options, under_way.folder, times, progress)
        under_way.ended("failed" if outcome.failures else "built", outcome.steps)
        if outcome.failures:
            raise outcome.failures[0][1]
        second = {step.key: _record(other.store, step) for step in again}
        say("comparing")
        return Reproduced(
            jobs=(before, jobs),
            engines=(engine or "", next((one.engine for one in second.values() if one.engine), "")),
            folders=(str(project.home.work), str(other.home.work)),
            started=(
                min((first[key].started for key in second), default=""),
                min((one.started for one in second.values()), default=""),
            ),
            outputs=tuple(
                _compared(step.name, one, two, store, other.store)
                for step in again
                for one, two in zip(first[step.key].outputs, second[step.key].outputs, strict=True)
            ),
        )
    finally:
        if not how.keep:
            remove_tree(folder)


def plan_of(store: LocalStore, sha256: str) -> Plan:
    """The steps that made a file, from the store alone. Raises InputError where no build here made it."""
    from rocwright.build.exec_step import load_step

    made = [one for one in store.records() if any(output.sha256 == sha256 for output in one.outputs)]
    # a record under the key of its inputs' contents has no step of its own
    record = next((one for one in made if one.kind not in LENT and store.step(one.key)), None)
    if record is None:
        raise InputError(
            "no build on this machine made this file",
            cause=f"the store has no step with an output of sha256 {sha256[:12]}",
            next_step="name the stack, or give its lock",
        )
    found: dict[str, Step] = {}

    def add(key: str) -> None:
        if key not in found:
            step = load_step(store, key)
            for item in step.inputs:
                add(item.key)
            found[key] = step

    add(record.key)
    return Plan(steps=tuple(found.values()), artifacts=(record.step,))


def request_of(plan: Plan) -> Request:
    """A request that stands for a plan whose project nobody knows."""
    roots = (step.component for step in plan.steps if step.kind == "base")
    return Request(stack=plan.artifacts[0], gpu=("unknown",), base=next(roots, "unknown"))


def _needed(plan: Plan, lent: Collection[str]) -> Sequence[Step]:
    """The steps that the artifacts are made of, in the plan's order, as far back as those that are lent."""
    by_key = {step.key: step for step in plan.steps}
    waiting = [step.key for step in plan.steps if step.name in plan.artifacts]
    seen: set[str] = set()
    while waiting:
        key = waiting.pop()
        if key not in seen:
            seen.add(key)
            waiting += [item.key for item in by_key[key].inputs] if by_key[key].kind not in lent else []
    return [step for step in plan.steps if step.key in seen]


def _record(store: LocalStore, step: Step) -> Record:
    record = store.record(step.key)
    if record is None or not all(store.has(one.sha256, one.size) for one in record.outputs):
        raise InputError(
            f"{step.name} is not in the store",
            cause="it was never built, or was cleaned up",
            next_step="rocwright build, then again",
        )
    return record


def _lend(project: Project, other: Project, records: Iterable[Record], how: How) -> None:
    """Give the second store what is not made again: the same files, checked, and not copied."""
    for record in records:
        for output in record.outputs:
            link = other.store.path / "tmp" / output.sha256
            link.hardlink_to(project.store.verified(output.sha256))
            other.store.put_file(link, move=True)
        other.store.put_record(record)
    if not how.roots:
        project.home.roots.mkdir(parents=True, exist_ok=True)
        other.home.roots.symlink_to(project.home.roots)


def _compared(step: str, one: Output, two: Output, first: LocalStore, second: LocalStore) -> Compared:
    says: tuple[str, ...] = ()
    if one.sha256 != two.sha256:
        says = tuple(differences(_file(first, one), _file(second, two), one.filename))
    return Compared(step=step, filename=one.filename, before=one.sha256, after=two.sha256, says=says)


def _file(store: LocalStore, output: Output) -> Path:
    return store.verified(output.sha256)
