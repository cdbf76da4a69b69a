"""Did a remedy on trial help? Told by what became of the step that it is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rocbase.errors import ExplainedError, FailureClass
from rocwright.diagnosis.explain import first_line, issue_of, named_by, named_in
from rocwright.model.steps import Plan
from rocwright.resolve.model import Lock, Remedy

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
    return lock.model_copy(update={"remedies": tuple(_settled(one, went) for one in lock.remedies)})


def _settled(remedy: Remedy, went: Went) -> Remedy:
    if remedy.outcome != "trial":
        return remedy
    verdict = _verdict(remedy, went)
    if verdict is None:
        return remedy
    outcome, told = verdict
    return remedy.model_copy(update={"outcome": outcome, "told": told})


def _verdict(remedy: Remedy, went: Went) -> tuple[str, str] | None:
    """What became of it and how that was seen; None where the build tells nothing of it."""
    error = went.failed.get(remedy.step)
    if error is not None:
        if error.failure in MACHINES:
            return None
        known = issue_of(error)
        if known is not None and known.name == remedy.issue:
            other = _another(remedy, error)
            if other:
                return "helped", f"{remedy.step} got past {remedy.issue}, then failed with it for {other}"
            return "useless", f"{remedy.step} failed in the same way"
        then = known.name if known is not None else f"an unknown failure: {first_line(error)}"
        return "helped", f"{remedy.step} got past {remedy.issue}, then failed with {then}"
    if remedy.step in went.skipped:
        return _before_it(remedy, went)
    names = {one.name for one in went.plan.steps}
    if remedy.step not in names:
        return "useless", f"the plan no longer has the step {remedy.step}"
    return "helped", f"{remedy.step} was built"


def _another(remedy: Remedy, error: ExplainedError) -> str:
    """What a failure of the same family is of, where it is another thing than before; else ""."""
    before, now = named_by(remedy.failed, remedy.issue), named_in(error, remedy.issue)
    return ", ".join(now.values()) if before and now and before != now else ""


def _before_it(remedy: Remedy, went: Went) -> tuple[str, str] | None:
    """Whether the remedy itself broke a step before the one that it is for."""
    of = {one.name: one.component for one in went.plan.steps}
    for name, error in went.failed.items():
        if of.get(name) == remedy.component and error.failure not in MACHINES:
            return "useless", f"{name} failed with it: {error.message}"
    return None
