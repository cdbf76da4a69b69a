"""One cycle: for every row a candidate, its build, its checks, and the channels that it has earned."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from rocbase.errors import ExplainedError, FailureClass, InputError
from rocbase.files.atomic import sha256_bytes, write_atomic
from rocbase.folders.temporary import temporary_folder
from rocbase.units import count
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import Progress
from rocwright.flow import build, known_lock, planned
from rocwright.follow.bisection.model import MACHINE
from rocwright.follow.cycle.channels import earned
from rocwright.follow.cycle.model import Culprit, CycleTold, RowTold
from rocwright.follow.cycle.row import FollowedRow
from rocwright.follow.cycle.shown import failed_here, promotions_of, shown
from rocwright.follow.watch.bump import LockCandidate
from rocwright.home import Home
from rocwright.plan.decide import State
from rocwright.plan.resolve.difference import LockDifference, difference
from rocwright.plan.resolve.model import Lock, Request
from rocwright.plan.resolve.settings import Channel
from rocwright.plan.resolve.tell_difference import tell_difference
from rocwright.project import Project
from rocwright.provenance.layout import lay_out
from rocwright.records.model import ANEW, Promotion, Which, new_run_id, now
from rocwright.records.opening import open_records
from rocwright.verify.bench.on_record import measured
from rocwright.verify.bench.run import bench
from rocwright.verify.run import verify

# Failures that are the machine's, or those of who serves a source: they say nothing of the candidate.
OF_OTHERS = MACHINE | {FailureClass.FETCH}

# The newest lock that upstream and the rules admit, from the one there is.
Follow = Callable[[Project, Lock], LockCandidate]


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleConfig:
    """What a cycle turns with: how candidates are found, how they are built, the channels in order.

    `bisect`: what made a candidate fail is looked for. `only_look`: nothing is built, kept or promoted.
    `row_ended` is called after each row: a whole cycle may take days.
    """

    follow: Follow
    channels: Sequence[Channel]
    options: BuildOptions
    progress: Progress
    bisect: bool = False
    only_look: bool = False
    row_ended: Callable[[], None] = lambda: None

    @property
    def options_of_builds(self) -> BuildOptions:
        """Those of its builds: clean and without shards where a channel wants all compiled anew."""
        clean = any(ANEW in channel.checks for channel in self.channels)
        return replace(self.options, resume=False, shards=1) if clean else self.options


def look(project_folder: Path, rows: Sequence[Request], like: Project, wheel: CycleConfig) -> CycleTold:
    """What a cycle would do: upstream is asked, and nothing is built, kept or promoted."""
    wheel = replace(wheel, only_look=True)
    with temporary_folder("cycle") as folder:
        return _turned(
            new_run_id(),
            [FollowedRow.of(request, project_folder, like).aside(Path(folder)) for request in rows],
            wheel,
        )


def cycle(project_folder: Path, rows: Sequence[Request], like: Project, wheel: CycleConfig) -> CycleTold:
    """Turn once over the rows of the project in `project_folder`; `like` gives the home and the catalog.

    A row that fails keeps what it had, and the others go on. Raises InputError where another cycle runs here.
    """
    with _alone(project_folder, like.home) as last:
        report = _turned(
            new_run_id(), [FollowedRow.of(request, project_folder, like) for request in rows], wheel
        )
        report = report.model_copy(update={"folder": str(project_folder.resolve())})
        write_atomic(last, report.model_dump_json(indent=1) + "\n")
    return report


def _turned(ident: str, rows: Sequence[FollowedRow], wheel: CycleConfig) -> CycleTold:
    started, start, reports = now(), time.monotonic(), []
    for number, row in enumerate(rows, 1):
        request = row.request
        labels = (request.stack, *request.gpu, request.base, request.variant)
        wheel.progress.say(
            f"cycle: row {number} of {len(rows)}: {', '.join(label for label in labels if label)}"
        )
        reports.append(RowRun(row, wheel, ident).told())
        wheel.row_ended()
    seconds = round(time.monotonic() - start, 1)
    return CycleTold(id=ident, started=started, seconds=seconds, rows=tuple(reports))


def last_cycle(project_folder: Path, home: Home) -> CycleTold | None:
    """What the last cycle of the project in this folder did; None before the first."""
    return _read(_place(project_folder, home).with_suffix(".json"))


def last_cycles(home: Home) -> list[CycleTold]:
    """What the last cycle of each project did whose folder is still there."""
    reports = [_read(path) for path in sorted(home.cycles.glob("*.json"))]
    return [
        report for report in reports if report is not None and report.folder and Path(report.folder).is_dir()
    ]


def _read(path: Path) -> CycleTold | None:
    try:
        return CycleTold.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None


def _place(project_folder: Path, home: Home) -> Path:
    return home.cycles / sha256_bytes(str(project_folder.resolve()).encode())[:16]


@contextmanager
def _alone(project_folder: Path, home: Home) -> Iterator[Path]:
    """Only one cycle a project at a time; gives the file of what it did."""
    place = _place(project_folder, home)
    place.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(place.with_suffix(".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(
            f"a cycle over {project_folder} is running already",
            cause="two cycles would try the same candidates",
            next_step="wait until it ends; rocwright history shows its progress",
        ) from None
    try:
        yield place.with_suffix(".json")
    finally:
        lock.release()


class RowRun:
    """One row in one cycle."""

    def __init__(self, row: FollowedRow, wheel: CycleConfig, ident: str) -> None:
        self.row, self.wheel, self.origin = row, wheel, f"cycle {ident}"
        self.say = wheel.progress.say
        self.first = wheel.channels[0].name

    def told(self) -> RowTold:
        """Do it; whatever goes wrong is told."""
        try:
            return self._report()
        except ExplainedError as error:
            if error.failure is FailureClass.INTERRUPTED:
                raise
            # what the store has of it by now is not built again; upstream may have moved on by the next time
            if not self.wheel.only_look:
                self.row.drop_trial()
            reason = "\n".join(
                filter(None, (f"{error.message}: {error.cause}", *error.detail.splitlines()[:2]))
            )
            kind = error.failure.value
            return RowTold(request=self.row.request, state="not tried", why=reason, failure=kind)

    def _report(self) -> RowTold:
        current, candidate = self.row.lock(self.first), self.row.trying
        silent: tuple[str, ...] = ()
        if candidate is None:
            proposal = self._candidate(current)
            candidate, silent = proposal.lock, proposal.silent
        changes = tuple(tell_difference(difference(current, candidate))) if current else ("the first lock",)
        if current is not None and not difference(current, candidate):
            # the lock that is there goes on; it is tried again where its recipe has changed, or it is gone
            candidate, changes = current, ()
            if not self._must_run(current):
                report = self._looked(current, ()) if self.wheel.only_look else self._settled(current, ())
                if silent and report.state == "unchanged":
                    return report.model_copy(update={"state": "not tried", "silent": silent})
                return report.model_copy(update={"silent": silent})
            changes = ("its build steps changed, or its outputs are no longer in the store",)
        failed = self.row.failed
        if failed is not None and not difference(failed[0], candidate):
            if failed[1] == self.row.built_of(candidate):
                reason = "the same candidate failed before"
                return RowTold(request=self.row.request, state="failed", why=reason, silent=silent)
            changes = (*changes, "it failed before, but is built differently now")
        if self.wheel.only_look:
            return self._looked(candidate, changes)
        self.row.keep("trying", candidate)
        for line in changes:
            self.say(f"  {line}")
        return self._tried(current, candidate, changes).model_copy(update={"silent": silent})

    def _candidate(self, current: Lock | None) -> LockCandidate:
        if current is not None:
            return self.wheel.follow(self.row.project, current)
        lock = known_lock(self.row.project, self.say)
        return LockCandidate(lock=lock, difference=LockDifference(), ages={}, again=(), left=())

    def _must_run(self, lock: Lock) -> bool:
        return any(decision.state is State.RUN for decision in planned(self.row.project, lock)[1])

    def _looked(self, lock: Lock, changes: tuple[str, ...]) -> RowTold:
        """What would be done with a lock."""
        if not changes:
            return RowTold(request=self.row.request, state="unchanged")
        again = [
            decision.step.name
            for decision in planned(self.row.project, lock)[1]
            if decision.state is State.RUN
        ]
        ran = f"{count(len(again), 'step')} would run: {', '.join(again[:6])}{', ...' if again[6:] else ''}"
        return RowTold(request=self.row.request, state="to try", changes=(*changes, ran))

    def _tried(self, current: Lock | None, candidate: Lock, changes: tuple[str, ...]) -> RowTold:
        project = replace(self.row.project, request=candidate.request)
        options, progress = self.wheel.options_of_builds, self.wheel.progress
        built = build(project, candidate, options, progress, origin=self.origin, lay=False)
        for _, error in built.failures:
            if error.failure in OF_OTHERS:
                raise error
        if built.failures:
            name, error = built.failures[0]
            return self._failed(current, candidate, changes, f"{name}: {error.message}: {error.cause}")
        findings = verify(project, candidate, options.engine, self.say, progress, origin=self.origin)
        wrong = [finding for finding in findings if not finding.ok]
        if wrong:
            return self._failed(current, candidate, changes, f"{wrong[0].name}: {wrong[0].detail}")
        if any(channel.slower is not None for channel in self.wheel.channels):
            self._measure(project, candidate)
        return self._settled(candidate, changes)

    def _measure(self, project: Project, candidate: Lock) -> None:
        """For channels that go by speed; one that could not be measured waits before them."""
        options, progress = self.wheel.options_of_builds, self.wheel.progress
        try:
            bench(
                project,
                candidate,
                engine=options.engine,
                origin=self.origin,
                say=self.say,
                progress=progress,
            )
        except ExplainedError as error:
            if error.failure is FailureClass.INTERRUPTED:
                raise
            self.say(f"  not measured: {error.message}: {error.cause}")

    def _failed(
        self, current: Lock | None, candidate: Lock, changes: tuple[str, ...], reason: str
    ) -> RowTold:
        moved = current is not None and bool(difference(current, candidate))
        culprit = self._culprit(current, candidate) if current and moved and self.wheel.bisect else None
        self.row.keep_failed(candidate)
        self.row.drop_trial()
        return RowTold(request=self.row.request, state="failed", changes=changes, why=reason, culprit=culprit)

    def _culprit(self, good: Lock, bad: Lock) -> Culprit:
        from rocwright.follow.bisection.report import tell, write_report
        from rocwright.follow.bisection.run import bisect
        from rocwright.follow.bisection.trial import LockTrials

        trials = LockTrials(
            project=self.row.project,
            options=self.wheel.options,
            progress=self.wheel.progress,
            say=self.say,
        )
        try:
            report = bisect(good, bad, trials)
        except ExplainedError as error:
            if error.failure is FailureClass.INTERRUPTED:
                raise
            return Culprit(says=(f"not found: {error.message}", error.cause), report="")
        page = write_report(report, good, bad, self.row.folder / "failed")
        return Culprit(says=tuple(tell(report)), report=str(page))

    def _settled(self, lock: Lock, changes: tuple[str, ...]) -> RowTold:
        """Promote a lock that nothing speaks against to the channels that it has earned."""
        stack, gpus, base = lock.request.stack, self.row.request.gpu, lock.request.base
        variant = self.row.request.variant
        digest = sha256_bytes(lock.model_dump_json(by_alias=True).encode())
        promoted, waits = [], {}
        with open_records(self.row.project.home) as records:
            runs = records.runs(
                Which(stack=stack, gpu=gpus[0], base=base, lock=digest), limit=100, steps=False
            )
            best, evidence = shown(records, runs)
            promotions = promotions_of(records, stack=stack, gpu=gpus[0], base=base, variant=variant)
            failed = failed_here(self.row.project, lock)
            untested = "it was never seen on this ROCm" if lock.request.allow_untested else ""
            cell = Which(stack=stack, gpu=gpus[0], base=base, variant=variant)
            verdicts = earned(
                self.wheel.channels,
                evidence,
                promotions,
                digest,
                measured=lambda lock: measured(records, replace(cell, lock=lock)),
            )
            for channel, reason in verdicts:
                obstacle = reason or failed or untested
                if obstacle:
                    waits[channel.name] = obstacle
                    continue
                if channel.name == self.first:
                    self._lay_out(lock)
                # the lock first: a promotion on record has its lock, whenever this is killed
                self.row.hold(channel.name, lock)
                for gpu in gpus:
                    records.promote(
                        Promotion(
                            stack=stack,
                            gpu=gpu,
                            base=base,
                            variant=variant,
                            channel=channel.name,
                            run=best,
                            lock=digest,
                            at=now(),
                            by=self.origin,
                            why=f"the evidence says {evidence.said!r}",
                        )
                    )
                promoted.append(channel.name)
        self.row.drop_trial()
        return RowTold(
            request=self.row.request,
            state="promoted" if promoted else "unchanged",
            changes=changes,
            promoted=tuple(promoted),
            waits=waits,
            lock=digest,
            run=best,
        )

    def _lay_out(self, lock: Lock) -> None:
        """Only what is promoted is laid out: a wheel that fails its checks is in no index."""
        project = replace(self.row.project, request=lock.request)
        lay_out(project, planned(project, lock)[0], lock, self.say)
