"""Which action of a known issue can be tried for a failed step, and why not the others?"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from rocbase.errors import InputError
from rocwright.catalog.issue import Issue
from rocwright.catalog.load import Catalog
from rocwright.catalog.refuse import refused
from rocwright.catalog.remedy import (
    AddPackages,
    BoundJobs,
    CompilerFlags,
    PickVersion,
    RemedyAction,
    SetVariables,
    TakeEdit,
    UnsetVariables,
)
from rocwright.doctor.remedies.words import does
from rocwright.model.steps import Plan, Step
from rocwright.model.versions import version_in
from rocwright.plan.resolve.aliases import ROCM, catalog_for
from rocwright.plan.resolve.lock import versions_in
from rocwright.plan.resolve.model import Lock, Remedy, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyOffer:
    """What can be tried for a failed step (None: nothing), and `why` not the actions before it."""

    remedy: Remedy | None
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A failed step: what is known of it, the lock and plan in which it failed, and with how many `jobs`
    and bytes of `memory` (0: that is not known).
    `silent` says why nothing outside can be asked, where that is so."""

    issue: Issue
    step: Step
    failed: str
    lock: Lock
    plan: Plan
    jobs: int = 0
    memory: int = 0
    silent: str = ""


Planner = Callable[[Lock], Plan]


def choose(case: Case, catalog: Catalog, planner: Planner, timestamp: str) -> RemedyOffer:
    """The first action of the issue that applies here and was not tried yet; nothing outside is asked."""
    catalog = catalog_for(case.lock.request, catalog)
    reasons: list[str] = []
    locked = next(
        (component for component in case.lock.components if component.name == case.step.component), None
    )
    if locked is None:
        reason = f"{case.step.component} is not a component of this lock, so no remedy can be stored for it"
        return RemedyOffer(remedy=None, why=(reason,))
    if (base_lock := case.lock.on) is not None and locked.name in {
        component.name for component in base_lock.components
    }:
        return RemedyOffer(remedy=None, why=(_of_below(locked.name, base_lock.request, case.lock.request),))
    for action in case.issue.remedies:
        remedy = Remedy(
            issue=case.issue.name,
            component=locked.name,
            version=locked.version,
            action=action,
            why=case.issue.means,
            source=case.issue.source,
            step=case.step.name,
            failed=case.failed,
            since=timestamp,
            outcome="trial",
            before=case.step.key,
            memory=_for_one(action, case),
        )
        reason = _not_here(remedy, case, catalog) or _without_effect(remedy, case, planner)
        if not reason:
            return RemedyOffer(remedy=remedy, why=tuple(reasons))
        reasons.append(f"{does(action, locked.name)}: {reason}")
    return RemedyOffer(remedy=None, why=tuple(reasons))


def _of_below(name: str, base_request: Request, request: Request) -> str:
    """A remedy here would change nothing: the lock below says how its components are built."""
    return (
        f"{name} is built by the stack {base_request.stack}, on which this one stands: "
        f"rocwright build {shlex.join(base_request.words)} --heal, and then "
        f"rocwright lock {shlex.join(request.words)} takes what helped"
    )


def added(lock: Lock, remedy: Remedy) -> Lock:
    """The lock with one remedy more."""
    return lock.model_copy(update={"remedies": (*lock.remedies, remedy)})


def _not_here(remedy: Remedy, case: Case, catalog: Catalog) -> str:
    """Why an action cannot be taken for a component of a lock, or ""."""
    for earlier in case.lock.remedies:
        if (earlier.component, earlier.action) == (remedy.component, remedy.action):
            if earlier.in_force:
                return "the lock already has it"
            if earlier.version == remedy.version:
                return f"tried before, {earlier.told}"
    return refused(remedy.action, catalog) or _kind(remedy.action, case, catalog)


def _kind(action: RemedyAction, case: Case, catalog: Catalog) -> str:
    match action:
        case SetVariables() | UnsetVariables() | CompilerFlags() | TakeEdit():
            return ""
        case BoundJobs():
            return "it already ran with one job" if case.jobs == 1 else ""
        case PickVersion():
            return _version(action, case.lock, catalog) or case.silent
        case AddPackages():
            return _packages(action, case.lock, catalog) or case.silent
    assert_never(action)


def _version(action: PickVersion, lock: Lock, catalog: Catalog) -> str:
    """Why another version of a component cannot be taken, as far as the lock and the catalog tell."""
    name, versions = action.component, action.versions
    version = versions_in(lock).get(name)
    if version is None:
        return f"this lock does not choose {name} itself"
    if version_in(version, versions):
        return f"the lock has {name} {version} already"
    if name in lock.request.versions:
        return f"{lock.request.versions[name]} of {name} is pinned"
    if name in lock.provided and (lock.rocm is None or name != ROCM):
        return f"{name} {version} comes with {lock.request.base}"
    recipe = catalog.components.get(name)
    if (
        name != ROCM
        and recipe is not None
        and not any(version_in(release.version, versions) for release in recipe.release)
    ):
        return f"the catalog has no {name} {versions}"
    return ""


def _packages(action: AddPackages, lock: Lock, catalog: Catalog) -> str:
    """Why system packages cannot be added, or would be for nothing."""
    root = lock.root("build")
    if root is None:
        return "this lock builds nothing"
    try:
        names = catalog.system_packages(catalog.base(lock.request.base)[0], action.names)
    except InputError as error:
        return error.message
    return "builds already have them" if set(names) <= set(root.wanted) else ""


def _for_one(action: RemedyAction, case: Case) -> int:
    """The bytes that a job is taken to want, so that no more jobs run than an action allows; 0 without one.

    Bytes hold on any machine, where a number of jobs is one machine's.
    """
    if not isinstance(action, BoundJobs):
        return 0
    fewer = max(1, int(case.jobs * action.share))
    return max(int(case.step.resources.memory / action.share), case.memory // fewer)


def _without_effect(remedy: Remedy, case: Case, planner: Planner) -> str:
    """Why a remedy of the plan itself would be for nothing, or ""."""
    if not isinstance(remedy.action, SetVariables | UnsetVariables | CompilerFlags | TakeEdit):
        return ""
    trial_step = next(
        (step for step in planner(added(case.lock, remedy)).steps if step.name == case.step.name), case.step
    )
    return "" if trial_step.key != case.step.key else "that changes nothing here"
