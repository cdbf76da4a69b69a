"""One lock tried: built as far as the failure lies, checked, and judged."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from rocbase.errors import ExplainedError, FailureClass, InputError, PatchError
from rocwright.execution.disk import check_room
from rocwright.execution.estimate import expected
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import Progress
from rocwright.execution.runs import UnderWay
from rocwright.farm.executors import run_steps
from rocwright.follow.bisection.model import MACHINE, Failure, Try
from rocwright.follow.bisection.search import TrialAnswer
from rocwright.plan.decide import State, decide
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project
from rocwright.records.model import BISECT

# Before the component and the check, where a failure is one of a check.
VERIFY = "verify/"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """How a lock went: the first failure, None where all went well, and whether anything had to run."""

    failure: Failure | None
    built: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LockTrials:
    """Where locks are tried. Nothing of the project itself changes: its lock, artifacts and last plan stay.

    `checks`: what is built is checked too.
    """

    project: Project
    options: BuildOptions
    progress: Progress
    say: Callable[[str], None]
    checks: bool = True

    def key(self, lock: Lock, step: str) -> str:
        """The key of a step under a lock; "" where the lock has no such step or cannot be planned."""
        try:
            plan = make_plan(lock, self.project.catalog)
        except ExplainedError:
            return ""
        return next((planned.key for planned in plan.steps if planned.name == step), "")

    def run(self, lock: Lock, step: str = "") -> TrialResult:
        """Build what the lock says, or as far as `step`, then check it unless a step was named.

        Raises what may be the machine's fault.
        """
        project = replace(self.project, request=lock.request)
        plan = make_plan(lock, project.catalog)
        step_names = () if step.startswith(VERIFY) else tuple(filter(None, (step,)))
        decisions = decide(plan, project.store, required=step_names)
        ran = any(decision.state is State.RUN for decision in decisions)
        if ran:
            check_room(decisions, project.home)
            operation = UnderWay(
                "build",
                project.request,
                project.home,
                self.say,
                lock=lock,
                origin=BISECT,
                variant=project.variant,
            )
            with operation as under_way:
                outcome = run_steps(
                    decisions,
                    project.store,
                    project.home,
                    self.options,
                    under_way.folder,
                    expected(project, decisions),
                    self.progress,
                    under_way,
                )
                under_way.ended("failed" if outcome.failures else "built")
            for _, error in outcome.failures:
                if error.failure in MACHINE:
                    raise error
            if outcome.failures:
                name, error = outcome.failures[0]
                return TrialResult(failure=Failure.of(name, error), built=True)
        if step_names or not self.checks:
            return TrialResult(failure=None, built=ran)
        return TrialResult(failure=self._checked(project, lock), built=True)

    def _checked(self, project: Project, lock: Lock) -> Failure | None:
        from rocwright.verify.run import verify

        findings = verify(project, lock, self.options.engine, self.say, self.progress, origin=BISECT)
        return next(
            (
                Failure(
                    step=f"{VERIFY}{finding.component}/{finding.check}",
                    failure=FailureClass.CHECK.value,
                    what=finding.name,
                    first=finding.detail,
                )
                for finding in findings
                if not finding.ok
            ),
            None,
        )

    def judge(self, lock: Lock, failure: Failure, changes: tuple[str, ...]) -> Try:
        """Whether a lock has the failure. One that cannot be planned, or fails otherwise, answers nothing."""
        started = time.monotonic()
        try:
            trial = self.run(lock, failure.step)
        except (InputError, PatchError) as error:
            return Try(changes=changes, answer=TrialAnswer.SKIP, built=False, says=error.message)
        seconds = round(time.monotonic() - started, 1)
        if trial.failure is None:
            return Try(changes=changes, answer=TrialAnswer.GOOD, built=trial.built, seconds=seconds)
        answer = TrialAnswer.BAD if trial.failure.same(failure) else TrialAnswer.SKIP
        says = f"{trial.failure.step}: {trial.failure.what}"
        return Try(changes=changes, answer=answer, built=trial.built, seconds=seconds, says=says)
