"""Artifacts built again from the same inputs, in another folder, later, with another number of jobs."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from rocbase.errors import InputError
from rocbase.model import Frozen
from rocwright.execution.disk import check_room
from rocwright.execution.estimate import expected
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import Progress
from rocwright.execution.runs import UnderWay
from rocwright.farm.executors import run_steps
from rocwright.home import Home
from rocwright.model.steps import Plan, Step
from rocwright.plan.decide import Decision, State
from rocwright.plan.resolve.model import Request
from rocwright.project import Project
from rocwright.records.model import Finding, now
from rocwright.sources.bases.roots import remove_tree
from rocwright.store.leases import holding
from rocwright.store.model import Output, Record, Store, finished, records, verified
from rocwright.verify.reproduce.differ import differences

T = TypeVar("T")

# Kinds of steps whose outputs are taken as they are, unless root file systems are to be made again too.
LENT = frozenset({"fetch", "base"})


class OutputComparison(Frozen):
    """An output and what came of it the second time: sha256 of both, bytes of the second; `says` tells what
    differs, in lines. `packed_otherwise`: the files differ, and the tars in them are the same, as another
    libzstd leaves them."""

    step: str
    component: str
    filename: str
    before: str
    after: str
    size: int
    says: tuple[str, ...] = ()
    packed_otherwise: bool = False

    @property
    def same(self) -> bool:
        return self.before == self.after or self.packed_otherwise


class Reproduced(Frozen):
    """What was built again: how it was the first time and the second, and every output compared. `jobs`,
    `engines` and `started` are those of the last step, `seconds` of all of them together."""

    jobs: tuple[int, int]
    engines: tuple[str, str]
    folders: tuple[str, str]
    started: tuple[str, str]
    seconds: tuple[float, float]
    outputs: tuple[OutputComparison, ...]

    @property
    def same(self) -> bool:
        return all(output.same for output in self.outputs)


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
    lent_kinds = {"fetch"} if how.roots else LENT
    needed = _needed(plan, lent_kinds)
    first = {step.key: _record(project.store, step) for step in needed}
    again = [step for step in needed if step.kind not in lent_kinds]
    folder = project.home.second / f"{os.getpid()}"
    twin = replace(project, home=Home(folder))
    lent = [first[step.key] for step in needed if step not in again]
    options = _otherwise([first[step.key] for step in again], how)
    steps = {step.key: step.name for step in needed}
    wait = partial(say, "waiting for another rocwright clean to end")
    try:
        # no clean-up takes what is lent, nor the second build's folder
        with (
            holding(project.store, steps, wait),
            UnderWay("reproduce", project.request, project.home, say, variant=project.variant) as under_way,
        ):
            _lend(project, twin, lent, how)
            _build(needed, again, twin, options, progress, under_way)
            say("comparing")
            second = {step.key: _record(twin.store, step) for step in again}
            report = _comparison(project, twin, again, first, second)
            under_way.ended(
                "verified" if report.same else "failed",
                findings=[_finding(output) for output in report.outputs],
            )
        return report
    finally:
        if not how.keep:
            remove_tree(folder)


def _otherwise(records: Sequence[Record], how: How) -> BuildOptions:
    """Another number of jobs than before, and the same engine, unless something else is asked for."""
    jobs = max((record.jobs for record in records), default=1)
    engine = next((record.engine for record in records if record.engine), None)
    return BuildOptions(jobs=how.jobs or (jobs - 1 or 2), engine=how.engine or engine, resume=False)


def _build(
    needed: Sequence[Step],
    again: Sequence[Step],
    twin: Project,
    options: BuildOptions,
    progress: Progress,
    under_way: UnderWay,
) -> None:
    decisions = [Decision(step=step, state=State.RUN if step in again else State.CACHED) for step in needed]
    check_room(decisions, twin.home)
    outcome = run_steps(
        decisions,
        twin.store,
        twin.home,
        options,
        under_way.folder,
        expected(twin, decisions),
        progress,
        under_way,
    )
    if outcome.failures:
        raise outcome.failures[0][1]


def _comparison(
    project: Project,
    twin: Project,
    again: Sequence[Step],
    first: Mapping[str, Record],
    second: Mapping[str, Record],
) -> Reproduced:
    pairs = [(step, first[step.key], second[step.key]) for step in again]
    return Reproduced(
        jobs=_both(pairs, lambda record: record.jobs, 1),
        engines=_both(pairs, lambda record: record.engine, ""),
        folders=(str(project.home.work), str(twin.home.work)),
        started=_both(pairs, lambda record: record.started, ""),
        seconds=(sum(then.seconds for _, then, _ in pairs), sum(rebuilt.seconds for *_, rebuilt in pairs)),
        outputs=tuple(
            _compared(step, original, repeated, project.store, twin.store)
            for step, then, rebuilt in pairs
            for original, repeated in zip(then.outputs, rebuilt.outputs, strict=True)
        ),
    )


def _both(
    pairs: Iterable[tuple[Step, Record, Record]], getter: Callable[[Record], T], default: T
) -> tuple[T, T]:
    """What the two builds say, of the last step that says other than `default`."""
    both = [(getter(then), getter(rebuilt)) for _, then, rebuilt in pairs]
    return next((pair for pair in reversed(both) if pair != (default, default)), (default, default))


def _finding(comparison: OutputComparison) -> Finding:
    return Finding(
        component=comparison.component,
        check="reproduce",
        name=f"{comparison.step}: the same bytes again",
        ok=comparison.same,
        detail=comparison.says[0] if comparison.says else "",
        artifact=comparison.filename,
        sha256=comparison.before,
        when=now(),
        machine=platform.node(),
    )


def plan_of(store: Store, sha256: str) -> Plan:
    """The steps that made a file, from the store alone. Raises InputError where no build here made it."""
    from rocwright.execution.exec_step import load_step

    makers = [
        record for record in records(store) if any(output.sha256 == sha256 for output in record.outputs)
    ]
    # a record under the key of its inputs' contents has no step of its own
    record = next((record for record in makers if record.kind not in LENT and store.step(record.key)), None)
    if record is None:
        raise InputError(
            "this file was not built on this machine",
            cause=f"the store has no step with an output of sha256 {sha256[:12]}",
            next_step="name the stack, or its lock",
        )
    steps: dict[str, Step] = {}

    def add(key: str) -> None:
        if key not in steps:
            step = load_step(store, key)
            for item in step.inputs:
                add(item.key)
            steps[key] = step

    add(record.key)
    return Plan(steps=tuple(steps.values()), artifacts=(record.step,))


def request_of(plan: Plan) -> Request:
    """A request that stands for a plan whose project nobody knows."""
    roots = (step.component for step in plan.steps if step.kind == "base")
    return Request(stack=plan.artifacts[0], gpu=("unknown",), base=next(roots, "unknown"))


def _needed(plan: Plan, lent: Collection[str]) -> Sequence[Step]:
    """The steps that the artifacts are made of, in the plan's order, as far back as those that are lent."""
    by_key = {step.key: step for step in plan.steps}
    waiting = [step.key for step in plan.steps if step.name in plan.artifacts]
    visited: set[str] = set()
    while waiting:
        key = waiting.pop()
        if key not in visited:
            visited.add(key)
            waiting += [item.key for item in by_key[key].inputs] if by_key[key].kind not in lent else []
    return [step for step in plan.steps if step.key in visited]


def _record(store: Store, step: Step) -> Record:
    record = finished(store, step.key)
    if record is None:
        raise InputError(
            f"{step.name} is not in the store",
            cause="it was never built, or its output was removed",
            next_step="rocwright build, then the same command again",
        )
    return record


def _lend(project: Project, twin: Project, records: Iterable[Record], how: How) -> None:
    """Give the second store what is not made again: the same files, checked, and not copied."""
    twin.home.work.mkdir(parents=True, exist_ok=True)
    for record in records:
        for output in record.outputs:
            link = twin.home.work / f"lent-{output.sha256}"
            link.hardlink_to(verified(project.store, output.sha256))
            twin.store.put_file(link, move=True)
        twin.store.put_record(record)
    if not how.roots:
        project.home.roots.mkdir(parents=True, exist_ok=True)
        twin.home.roots.symlink_to(project.home.roots)


def _compared(
    step: Step, original: Output, repeated: Output, first: Store, second: Store
) -> OutputComparison:
    says: tuple[str, ...] = ()
    packed_otherwise = False
    if original.sha256 != repeated.sha256:
        files = verified(first, original.sha256), verified(second, repeated.sha256)
        packed_otherwise = original.is_same(repeated)
        says = () if packed_otherwise else tuple(differences(*files, original.filename))
    return OutputComparison(
        step=step.name,
        component=step.component,
        filename=original.filename,
        before=original.sha256,
        after=repeated.sha256,
        size=repeated.size,
        says=says,
        packed_otherwise=packed_otherwise,
    )
