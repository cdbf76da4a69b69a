"""The actions of a family for what a failed step names: a header that it misses, a warning that stops it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from rocbase.errors import ExplainedError, InputError
from rocwright.catalog.issue import Issue
from rocwright.catalog.load import Catalog
from rocwright.catalog.remedy import AddPackages, CompilerFlags, RemedyAction, SetVariables, texts_of
from rocwright.diagnosis.explain import named_in
from rocwright.diagnosis.missing import HEADER
from rocwright.plan.resolve.model import Lock

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+=_.-]{0,79}")

PackagesWith = Callable[[str], tuple[str, ...]]
"""The packages of a base that have a header, the likeliest first. May raise NetworkError."""


def none_known(header: str) -> tuple[str, ...]:
    """Of no header it is known which package has it."""
    return ()


def fitted(
    issue: Issue, error: ExplainedError, lock: Lock, catalog: Catalog, packages_with: PackagesWith
) -> Issue:
    """A family with its actions for what this failure names: its name filled into variables and flags, and,
    of a header that is missing, an action more for each name of the catalog that brings it."""
    if issue.filled is None or not (issue.filled.indexed or any(map(_places, issue.remedies))):
        return issue
    named = named_in(error, issue.name)
    actions = [filled for action in issue.remedies if (filled := _filled(action, named)) is not None]
    header = named.get(HEADER, "") if issue.filled.indexed else ""
    packages = packages_with(header) if header else ()
    names = [name for package in packages for name in _names(package, lock, catalog)]
    actions += [AddPackages(kind="packages", names=(name,)) for name in dict.fromkeys(names)]
    return issue.model_copy(update={"remedies": tuple(actions)})


def _places(action: RemedyAction) -> bool:
    return any("{" in text for text in texts_of(action))


def _filled(action: RemedyAction, named: Mapping[str, str]) -> RemedyAction | None:
    """An action with what a line names in its places; None where that is no plain name, or not known.

    A line is not to be trusted: a name has letters, digits and few other signs, and begins no option.
    """
    if not _places(action):
        return action
    plain = {name: text for name, text in named.items() if _NAME.fullmatch(text)}
    try:
        match action:
            case SetVariables():
                variables = {name: text.format_map(plain) for name, text in action.variables.items()}
                return action.model_copy(update={"variables": variables})
            case CompilerFlags():
                return action.model_copy(
                    update={"flags": tuple(flag.format_map(plain) for flag in action.flags)}
                )
    except KeyError:
        return None
    return action


def _names(package: str, lock: Lock, catalog: Catalog) -> list[str]:
    """The catalog's names for a package of the lock's base, those for the fewest packages first."""
    base = catalog.base(lock.request.base)[0]
    candidates: list[tuple[int, str]] = []
    for name in {*catalog.system.packages, *base.packages}:
        try:
            packages = catalog.system_packages(base, (name,))
        except InputError:
            continue
        if package in packages:
            candidates.append((len(packages), name))
    return [name for _, name in sorted(candidates)]
