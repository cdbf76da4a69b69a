"""The trail of a lock's remedies: which failure, which action, what it changed, whether it helped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rocbase.errors import InputError
from rocbase.units import printable
from rocwright.catalog.issue import the_issues
from rocwright.doctor.remedies.words import does
from rocwright.model.versions import version_in
from rocwright.plan.resolve.lock import versions_in
from rocwright.plan.resolve.model import Lock, Remedy

# What became of a remedy, for people.
OUTCOMES = {"trial": "on trial", "helped": "helped", "useless": "did not help"}


def needless(remedy: Remedy, lock: Lock) -> str:
    """Why a remedy is not needed any more, by what the catalog knows now, or ""."""
    version = next(
        (component.version for component in lock.components if component.name == remedy.component), ""
    )
    if not version or not remedy.in_force:
        return ""
    issue = the_issues()[0].get(remedy.issue)
    versions = versions_in(lock)
    for fixed in issue.fixed_in if issue is not None else ():
        if fixed.component in versions and version_in(versions[fixed.component], fixed.versions):
            return f"{fixed.component} {fixed.versions} has it fixed: {fixed.source}"
    affected = issue.versions.get(remedy.component, "") if issue is not None else ""
    if affected and not version_in(version, affected):
        return f"{remedy.component} {affected} has this failure, not {version}"
    edit = getattr(remedy.action, "edit", None)
    if edit is not None and edit.absorbed and version_in(version, edit.absorbed):
        return f"upstream may contain this edit since {edit.absorbed}"
    return ""


def as_data(lock: Lock) -> list[dict[str, Any]]:
    """The trail for `--json`, in the order in which the remedies were taken."""
    return [
        remedy.model_dump(mode="json", by_alias=True)
        | {
            "does": does(remedy.action, remedy.component),
            "in_force": remedy.in_force,
            "needless": needless(remedy, lock),
        }
        for remedy in lock.remedies
    ]


def lines(remedy: Remedy, lock: Lock) -> Iterator[tuple[str, str]]:
    """The trail of one remedy as a label and a text each."""
    return ((label, printable(text)) for label, text in _lines(remedy, lock))


def _lines(remedy: Remedy, lock: Lock) -> Iterator[tuple[str, str]]:
    location = f"{remedy.component} {remedy.version}"
    location = location if remedy.step == remedy.component else f"{remedy.step} of {location}"
    yield "failed", f"{location}: {remedy.failed}"
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
    if reason := needless(remedy, lock):
        yield "note", f"it may no longer be needed: {reason}; rocwright heal --forget {remedy.issue}"


def without(lock: Lock, issue: str) -> Lock:
    """The lock without the remedies of an issue. Raises InputError where it has none."""
    remaining = tuple(remedy for remedy in lock.remedies if remedy.issue != issue)
    if remaining == lock.remedies:
        names = sorted({remedy.issue for remedy in lock.remedies})
        raise InputError(
            f"the lock has no remedy for {issue!r}",
            cause=f"it has some for {', '.join(names)}" if names else "it has none",
            next_step="rocwright heal --explain lists the remedies of the lock",
        )
    return lock.model_copy(update={"remedies": remaining})
