"""Which actions may be in no build, whoever asks for them."""

from __future__ import annotations

from rocwright.catalog.load import Catalog, kept_from_builds
from rocwright.catalog.remedy import CompilerFlags, RemedyAction, SetVariables, UnsetVariables
from rocwright.model.step_environment import FIXED


def refused(action: RemedyAction, catalog: Catalog) -> str:
    """Why an action may be in no build, or ""."""
    if isinstance(action, CompilerFlags) and any("{" in flag for flag in action.flags):
        return f"{' '.join(action.flags)} has a place that nothing filled in"
    if not isinstance(action, SetVariables | UnsetVariables):
        return ""
    if action.scope != "build":
        return "it is for where the thing runs, not for its build"
    for name in action.variables:
        if name in FIXED:
            return f"{name} is the same in every build"
        rule = kept_from_builds(catalog, name) if isinstance(action, SetVariables) else None
        if rule is not None:
            return f"{name} in a build: {rule.reason}"
    return ""
