"""An action in words: what it does to the build of a component."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from rocbase.units import printable
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
from rocwright.plan.resolve.model import Remedy


def does(action: RemedyAction, component: str) -> str:
    """What an action does, as the end of a sentence that begins with what does it; one line to be shown."""
    return printable(_does(action, component))


def _does(action: RemedyAction, component: str) -> str:
    match action:
        case SetVariables() if action.join:
            put = listed(f"{value} to {name}" for name, value in action.variables.items())
            return f"adds {put} for {component}"
        case SetVariables():
            put = listed(f"{name}={value}" for name, value in action.variables.items())
            return f"sets {put} for {component}"
        case UnsetVariables():
            return f"removes {listed(action.variables)} from the environment of {component}"
        case CompilerFlags():
            compilers = f"{listed(action.programs)} by a wrapper"
            return f"gives {' '.join(action.flags)} to {compilers} for {component}, whatever its build says"
        case TakeEdit():
            return f"edits {action.edit.subject} of {action.component} ({action.edit.why})"
        case BoundJobs():
            return f"runs {component} with at most {action.share:.0%} of the jobs"
        case PickVersion():
            return f"uses {action.component} {action.versions}"
        case AddPackages():
            return f"adds {listed(action.names)} to the packages that builds have"
    assert_never(action)


def offered(remedy: Remedy | None) -> str:
    """What `build --heal` would do, or ""."""
    if remedy is None:
        return ""
    return f"{does(remedy.action, remedy.component)}, and records it in the lock"


def refusal(remedy: Remedy | None, reasons: Sequence[str]) -> str:
    """Why it can do nothing, or ""."""
    return f"rocwright cannot do it by itself: {'; '.join(reasons)}" if reasons and remedy is None else ""


def listed(names: Iterable[str]) -> str:
    """Words as people list them: a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
