"""Which action of a known issue can be tried for a failed step, and why not the others?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from rocwright.catalog.issue import Issue
from rocwright.catalog.load import Catalog
from rocwright.catalog.mend import (
    AddPackages,
    BoundJobs,
    Mend,
    PickVersion,
    SetVariables,
    TakeEdit,
    UnsetVariables,
)
from rocwright.plan.model import Plan, Step
from rocwright.plan.remedies import refused
from rocwright.resolve.model import Lock, Remedy
from rocwright.trouble.heal.words import does


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What can be tried for a failed step (None: nothing), and `why` not the actions before it."""

    remedy: Remedy | None
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A failed step: what is known of it, and the lock and plan in which it failed."""

    issue: Issue
    step: Step
    failed: str
    lock: Lock
    plan: Plan
    jobs: int = 0


Planner = Callable[[Lock], Plan]


def choose(case: Case, catalog: Catalog, planner: Planner, now: str) -> Offer:
    """The first action of the issue that applies here and was not tried yet; nothing outside is asked."""
    reasons: list[str] = []
    locked = next((one for one in case.lock.components if one.name == case.step.component), None)
    if locked is None:
        why = f"{case.step.component} is no component of this lock, so nothing can be kept for it"
        return Offer(remedy=None, why=(why,))
    for action in case.issue.mend:
        remedy = Remedy(
            issue=case.issue.name,
            component=locked.name,
            version=locked.version,
            action=action,
            why=case.issue.means,
            source=case.issue.source,
            step=case.step.name,
            failed=case.failed,
            since=now,
            before=case.step.key,
        )
        why = _not_here(remedy, case, catalog) or _without_effect(remedy, case, planner)
        if not why:
            return Offer(remedy=remedy, why=tuple(reasons))
        reasons.append(f"{does(action, locked.name)}: {why}")
    return Offer(remedy=None, why=tuple(reasons))


def added(lock: Lock, remedy: Remedy) -> Lock:
    """The lock with one remedy more."""
    return lock.model_copy(update={"remedies": (*lock.remedies, remedy)})


def _not_here(remedy: Remedy, case: Case, catalog: Catalog) -> str:
    """Why an action cannot be taken for a component of a lock, or ""."""
    for one in case.lock.remedies:
        if (one.component, one.action) == (remedy.component, remedy.action):
            if one.in_force:
                return "the lock has it already"
            if one.version == remedy.version:
                return f"tried before, {one.told}"
    return refused(remedy.action, catalog) or _kind(remedy.action)


def _kind(action: Mend) -> str:
    match action:
        case SetVariables() | UnsetVariables() | TakeEdit():
            return ""
        case BoundJobs() | PickVersion() | AddPackages():
            return "that is not done by itself yet"
    assert_never(action)


def _without_effect(remedy: Remedy, case: Case, planner: Planner) -> str:
    """Why a remedy of the plan itself would be for nothing, or ""."""
    after = next(
        (one for one in planner(added(case.lock, remedy)).steps if one.name == case.step.name), case.step
    )
    return "" if after.key != case.step.key else "that changes nothing here"
