"""Did a remedy on trial help? Told by what became of the step that it is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rocbase.errors import ExplainedError, FailureClass
from rocwright.diagnosis.explain import first_line, issue_of, named_by, named_in
from rocwright.model.steps import Plan
from rocwright.plan.resolve.model import Lock, Remedy

MACHINES = frozenset(
    {
        FailureClass.OUT_OF_DISK,
        FailureClass.DISK,
        FailureClass.NETWORK,
        FailureClass.SANDBOX,
        FailureClass.TIMEOUT,
        FailureClass.INTERNAL,
        FailureClass.INTERRUPTED,
    }
)
"""Failures of which no remedy of a build can be the reason: they leave open whether it helped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Went:
    """How the steps of a plan went: those that `failed`, and those that were not reached (`skipped`)."""

    plan: Plan
    failed: Mapping[str, ExplainedError]
    skipped: frozenset[str] = frozenset()


def settled(lock: Lock, went: Went) -> Lock:
    """The lock with what a build has shown of its remedies on trial."""
    return lock.model_copy(update={"remedies": tuple(_settled(remedy, went) for remedy in lock.remedies)})


def _settled(remedy: Remedy, went: Went) -> Remedy:
    if remedy.outcome != "trial":
        return remedy
    verdict = _verdict(remedy, went)
    if verdict is None:
        return remedy
    outcome, message = verdict
    return remedy.model_copy(update={"outcome": outcome, "told": message})


def _verdict(remedy: Remedy, went: Went) -> tuple[str, str] | None:
    """What became of it and how that was seen; None where the build tells nothing of it."""
    error = went.failed.get(remedy.step)
    if error is not None:
        if error.failure in MACHINES:
            return None
        issue = issue_of(error)
        if issue is not None and issue.name == remedy.issue:
            subject = _another(remedy, error)
            if subject:
                return "helped", f"{remedy.step} got past {remedy.issue}, then failed with it for {subject}"
            return "useless", f"{remedy.step} failed in the same way"
        then = issue.name if issue is not None else f"an unknown failure: {first_line(error)}"
        return "helped", f"{remedy.step} got past {remedy.issue}, then failed with {then}"
    if remedy.step in went.skipped:
        return _before_it(remedy, went)
    names = {step.name for step in went.plan.steps}
    if remedy.step not in names:
        return "useless", f"the plan no longer has the step {remedy.step}"
    return "helped", f"{remedy.step} was built"


def _another(remedy: Remedy, error: ExplainedError) -> str:
    """What a failure of the same family is of, where it is another thing than before; else ""."""
    previous, current = named_by(remedy.failed, remedy.issue), named_in(error, remedy.issue)
    return ", ".join(current.values()) if previous and current and previous != current else ""


def _before_it(remedy: Remedy, went: Went) -> tuple[str, str] | None:
    """Whether the remedy itself broke a step before the one that it is for."""
    components = {step.name: step.component for step in went.plan.steps}
    for name, error in went.failed.items():
        if components.get(name) == remedy.component and error.failure not in MACHINES:
            return "useless", f"{name} failed with it: {error.message}"
    return None
