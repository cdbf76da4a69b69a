"""The trail of a lock's remedies: which failure, which action, what it changed, whether it helped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rocbase.errors import InputError
from rocbase.units import printable
from rocwright.catalog.issue import the_issues
from rocwright.model.versions import version_in
from rocwright.remedies.words import does
from rocwright.resolve.lock import versions_in
from rocwright.resolve.model import Lock, Remedy

OUTCOMES = {"trial": "on trial", "helped": "helped", "useless": "did not help"}
"""What became of a remedy, for people."""


def needless(remedy: Remedy, lock: Lock) -> str:
    """Why a remedy is not needed any more, by what the catalog knows now, or ""."""
    version = next((one.version for one in lock.components if one.name == remedy.component), "")
    if not version or not remedy.in_force:
        return ""
    issue = the_issues()[0].get(remedy.issue)
    versions = versions_in(lock)
    for fixed in issue.fixed_in if issue is not None else ():
        if fixed.component in versions and version_in(versions[fixed.component], fixed.versions):
            return f"{fixed.component} {fixed.versions} has it fixed: {fixed.source}"
    had = issue.versions.get(remedy.component, "") if issue is not None else ""
    if had and not version_in(version, had):
        return f"{remedy.component} {had} has this failure, not {version}"
    edit = getattr(remedy.action, "edit", None)
    if edit is not None and edit.absorbed and version_in(version, edit.absorbed):
        return f"upstream may contain this edit since {edit.absorbed}"
    return ""


def as_data(lock: Lock) -> list[dict[str, Any]]:
    """The trail for `--json`, in the order in which the remedies were taken."""
    return [
        one.model_dump(mode="json", by_alias=True)
        | {"does": does(one.action, one.component), "in_force": one.in_force, "needless": needless(one, lock)}
        for one in lock.remedies
    ]


def lines(remedy: Remedy, lock: Lock) -> Iterator[tuple[str, str]]:
    """The trail of one remedy as a label and a text each."""
    return ((label, printable(text)) for label, text in _lines(remedy, lock))


def _lines(remedy: Remedy, lock: Lock) -> Iterator[tuple[str, str]]:
    where = f"{remedy.component} {remedy.version}"
    where = where if remedy.step == remedy.component else f"{remedy.step} of {where}"
    yield "failed", f"{where}: {remedy.failed}"
    yield "issue", f"{remedy.issue}: {remedy.why}"
    if remedy.source:
        yield "source", "; ".join(remedy.source)
    yield "action", f"{does(remedy.action, remedy.component)}, {remedy.since}"
    changed = bool(remedy.after) and remedy.after != remedy.before
    yield (
        "key",
        (f"{remedy.before[:12]} -> {remedy.after[:12]}" if changed else f"{remedy.before[:12]}, not changed"),
    )
    yield "result", f"{OUTCOMES[remedy.outcome]}{f': {remedy.told}' if remedy.told else ''}"
    if why := needless(remedy, lock):
        yield "note", f"it may no longer be needed: {why}; rocwright heal --forget {remedy.issue}"


def without(lock: Lock, issue: str) -> Lock:
    """The lock without the remedies of an issue. Raises InputError where it has none."""
    left = tuple(one for one in lock.remedies if one.issue != issue)
    if left == lock.remedies:
        names = sorted({one.issue for one in lock.remedies})
        raise InputError(
            f"the lock has no remedy for {issue!r}",
            cause=f"it has some for {', '.join(names)}" if names else "it has none",
            next_step="rocwright heal --explain lists the remedies of the lock",
        )
    return lock.model_copy(update={"remedies": left})
