"""Rehearses rows: makes stand-ins ready, runs the steps, reads the reports, and keeps the evidence."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import ExplainedError, PatchError
from rocwright.catalog.load import Catalog
from rocwright.execution.disk import check_room
from rocwright.execution.estimate import expected
from rocwright.execution.options import BuildOptions
from rocwright.execution.outcome import StepsOutcome as Ran
from rocwright.execution.progress import Progress
from rocwright.execution.runs import UnderWay
from rocwright.farm.executors import run_steps
from rocwright.home import Home
from rocwright.model.edits import Edit
from rocwright.model.steps import Plan, Step, TreeAction
from rocwright.plan.decide import State, decide
from rocwright.plan.resolve.aliases import catalog_for
from rocwright.plan.resolve.model import Lock, Request
from rocwright.plan.resolve.shipped import shipped_lock
from rocwright.project import Project, project_of
from rocwright.records.model import REHEARSAL, Finding, StepRun, now
from rocwright.rehearsal.book import Book, read_book
from rocwright.rehearsal.edits import counted, judged
from rocwright.rehearsal.jobs import ComponentJob, JobMaker, RehearsedRow, Tree
from rocwright.rehearsal.report import TrialReport, parts_of, read_report, untried
from rocwright.rehearsal.result import Rehearsed, RowRehearsed, TrialFault, TrialTally
from rocwright.rehearsal.stand_ins import StandIns
from rocwright.rehearsal.steps import REPORT
from rocwright.rehearsal.wheels import PUBLISHED, parts_of_wheels
from rocwright.store.model import verified

# A tree whose edits do not all apply is made once more, with those that do.
ROUNDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """`every`: all files, and no sample of them; `seed`: of the samples; `anew`: archives and indexes are
    asked again for stand-ins and sources."""

    every: bool = False
    seed: str = "1"
    anew: bool = False


class Rehearser:
    """Rehearses one row after the other; stand-ins are made ready once."""

    def __init__(
        self, catalog: Catalog, home: Home, options: BuildOptions, how: How, progress: Progress
    ) -> None:
        self.catalog, self.home, self.options = catalog, home, options
        self.how, self.progress = how, progress
        self.book: Book = read_book(catalog)
        self.stand_ins: StandIns | None = None

    def row(self, request: Request) -> RowRehearsed:
        """Raises what running steps raises: no sandbox, no room, Ctrl-C."""
        report = RowRehearsed(row=request.name, stack=request.stack, gpu=request.gpu[0], base=request.base)
        try:
            lock = shipped_lock(self.catalog, request)
        except ExplainedError as error:
            return report.model_copy(update={"problem": f"{error.message}: {error.cause}"})
        if lock is None:
            return report.model_copy(update={"problem": "no lock comes with rocwright for this row"})
        catalog = catalog_for(request, self.catalog)
        row = RehearsedRow(lock=lock, catalog=catalog, seed=self.how.seed, every=self.how.every)
        if not row.tried:
            return report.model_copy(update={"problem": "it is taken as published: nothing of it is tried"})
        project = project_of(request, Path.cwd(), self.home)
        # without its lock: what a channel may hold is a lock that was built
        with UnderWay(
            "rehearse", request, self.home, self.progress.say, variant=project.variant
        ) as under_way:
            report = report.model_copy(update={"components": self._components(row, project, under_way)})
            _note(under_way, report)
            under_way.ended(report.outcome, findings=_findings(report))
        return report

    def _components(self, row: RehearsedRow, project: Project, under_way: UnderWay) -> tuple[Rehearsed, ...]:
        self.stand_ins = self.stand_ins or StandIns(
            catalog=self.catalog,
            home=self.home,
            store=project.store,
            say=self.progress.say,
            anew=self.how.anew,
        )
        without: dict[str, list[Edit]] = {}
        faults: dict[str, list[TrialFault]] = {}
        for _ in range(ROUNDS):
            maker = JobMaker(row=row, book=self.book, stand_ins=self.stand_ins, without=without)
            jobs = [maker.job(component, locked) for component, locked in row.tried]
            ran = self._run(jobs, project, under_way)
            drifted = {name for name, error in ran.failures if isinstance(error, PatchError)}
            for job in jobs:
                for tree in job.trees:
                    if tree.step.name in drifted:
                        drifts = _drifted(tree, project, row)
                        without[tree.step.inputs[0].key] = [edit for edit, _ in drifts]
                        faults.setdefault(job.component.name, []).extend(fault for _, fault in drifts)
            if not drifted:
                break
        rocm = self.book.rocm_of(row.lock.request.base)
        reports = {job.component.name: self._reports(job, project, ran) for job in jobs}
        return tuple(
            self._of_wheels(job, row, project, ran)
            if job.component.kind == PUBLISHED
            else _rehearsed(
                row.lock, rocm, job, reports[job.component.name], faults.get(job.component.name, ())
            )
            for job in jobs
        )

    def _of_wheels(self, job: ComponentJob, row: RehearsedRow, project: Project, ran: Ran) -> Rehearsed:
        """A component that is wheels as others published them."""
        parts = [*job.left]
        for step in job.steps:
            missing = _missing_reason(step, ran)
            parts += parts_of_wheels(job.component, job.locked, row.gpu, row.catalog, project.store, missing)
        return Rehearsed(
            component=job.component.name,
            version=job.locked.version,
            source=job.locked.place if job.steps else "",
            parts=tuple(parts),
        )

    def _run(self, jobs: Iterable[ComponentJob], project: Project, under_way: UnderWay) -> Ran:
        steps = {step.key: step for job in jobs for step in job.steps}
        artifacts = tuple(name for job in jobs for name in job.trials)
        artifacts += tuple(
            job.steps[-1].name for job in jobs if job.component.kind == PUBLISHED and job.steps
        )
        # a tree without trials shows whether its edits apply
        artifacts += tuple(tree.step.name for job in jobs for tree in job.trees)
        if not steps:
            return Ran()
        plan = Plan(steps=tuple(steps.values()), artifacts=artifacts)
        decisions = decide(plan, project.store)
        if not any(decision.state is State.RUN for decision in decisions):
            return Ran()
        check_room(decisions, self.home)
        return run_steps(
            decisions,
            project.store,
            self.home,
            self.options,
            under_way.folder,
            expected(project, decisions),
            self.progress,
            under_way,
        )

    def _reports(self, job: ComponentJob, project: Project, ran: Ran) -> list[tuple[str, TrialReport | str]]:
        """What each step of a component reported, or why it could not, by its name."""
        reports: list[tuple[str, TrialReport | str]] = []
        steps = {step.name: step for step in job.steps}
        for name, (_, trials) in job.trials.items():
            record = project.store.record(steps[name].key)
            if record is None:
                reports.append((name, _missing_reason(steps[name], ran)))
                continue
            [output] = [output for output in record.outputs if output.name == REPORT.name]
            try:
                reports.append((name, read_report(verified(project.store, output.sha256), len(trials))))
            except ExplainedError as error:
                reports.append((name, f"{error.message}: {error.cause}"))
        return reports


def _drifted(tree: Tree, project: Project, row: RehearsedRow) -> list[tuple[Edit, TrialFault]]:
    """The edits of a tree that do not apply to it, and what is wrong with each."""
    action, record = tree.step.action, project.store.record(tree.step.inputs[0].key)
    assert isinstance(action, TreeAction)
    if record is None:
        return []
    verdicts = judged(action, record.outputs, project.store, row.lock.request.gpu)
    return [
        (
            verdict.edit,
            TrialFault(
                name=verdict.edit.subject, detail=verdict.what or f"it changes nothing: {verdict.cause}"
            ),
        )
        for verdict in verdicts
    ]


def _missing_reason(step: Step, ran: Ran) -> str:
    """Why a step has no report: its own failure, else the first of the run."""
    errors = dict(ran.failures)
    error = errors.get(step.name) or next(iter(errors.values()), None)
    return f"{error.message}: {error.cause}" if error is not None else "it was not run"


def _rehearsed(
    lock: Lock,
    rocm: str,
    job: ComponentJob,
    reports: Sequence[tuple[str, TrialReport | str]],
    faults: Sequence[TrialFault],
) -> Rehearsed:
    """A component as it went."""
    locked = job.source.locked if job.source is not None else None
    parts: list[TrialTally] = []
    if job.wants:
        applied = [written for tree in job.trees for written, _ in tree.edits]
        if locked is None and not applied:
            parts.append(
                TrialTally(part="edits", name="edits", tried=0, all=len(job.wants), reasons=(job.reason,))
            )
        else:
            version = locked.version if locked is not None else job.locked.version
            place = locked.kind if locked is not None else ""
            parts.append(counted(job.wants, applied, faults, version, place))
    tools: dict[str, str] = {}
    for name, report in reports:
        _, trials = job.trials[name]
        if isinstance(report, str):
            parts += [untried(trial, report) for trial in trials]
        else:
            parts += parts_of(report, trials)
            tools |= report.tools
    parts += job.left
    ready = [ready for ready, _ in job.trials.values()]
    return Rehearsed(
        component=job.component.name,
        version=job.locked.version,
        source=locked.place if locked is not None else "",
        on=tuple(dict.fromkeys(f"{entry.stand_in.base} ({entry.stand_in.name})" for entry in ready)),
        differs=tuple(dict.fromkeys(_differs(lock, job, rocm))),
        tools=tools,
        parts=tuple(parts),
    )


def _differs(lock: Lock, job: ComponentJob, rocm: str) -> Iterable[str]:
    """How the stand-ins and the source differ from what the row has, in words."""
    if job.source is not None and job.source.instead:
        yield job.source.instead
    for ready, _ in job.trials.values():
        stand_in = ready.stand_in
        if stand_in.base != lock.request.base:
            yield f"base: {stand_in.base} for {lock.request.base}"
        if stand_in.rocm and rocm and stand_in.rocm != rocm:
            yield f"ROCm in {stand_in.rocm} for {rocm}"
        versions = ready.lock.versions if ready.lock is not None else {}
        for name, version in versions.items():
            required = lock.versions.get(name, version)
            if name != job.component.name and name in lock.versions and required != version:
                yield f"{name}: {version} for {required}"


def _findings(report: RowRehearsed) -> list[Finding]:
    return [
        Finding(
            component=component.component,
            check="rehearse",
            name=f"{part.part}: {part.name}",
            ok=not part.failed,
            absent=not part.tried,
            detail=f"{part.tried} of {part.all}"
            + "".join(f"; {fault.name}: {fault.detail}" for fault in part.failed[:3]),
            when=now(),
            machine=platform.node(),
        )
        for component in report.components
        for part in component.parts
    ]


def _note(under_way: UnderWay, report: RowRehearsed) -> None:
    """The parts as they stand in the record of the run, where any was tried."""
    if not report.tried:
        return
    for component in report.components:
        for part in component.parts:
            error = {"class": "check", "message": part.failed[0].detail} if part.failed else {}
            under_way.note(
                StepRun(
                    name=f"rehearsed/{component.component}: {part.name}",
                    key="",
                    outcome="failed" if part.failed else "ok",
                    error=error,
                    component=component.component,
                    kind=REHEARSAL,
                    counted=part.all,
                    tried=part.tried,
                )
            )
