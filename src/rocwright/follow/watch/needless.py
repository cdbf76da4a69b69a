"""What a newer version of a component makes needless: edits, remedies, known issues that are mended there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from packaging.version import InvalidVersion, Version

from rocwright.catalog.issue import Issue
from rocwright.catalog.load import Catalog
from rocwright.model.versions import version_in
from rocwright.plan.resolve.choose import ROCM
from rocwright.plan.resolve.model import Lock


def needless(
    lock: Lock, catalog: Catalog, issues: Mapping[str, Issue], name: str, version: str
) -> tuple[str, ...]:
    """In words, each a line; nothing for what is no component."""
    locked = _locked_version(lock, name)
    try:
        Version(version)
        Version(locked)
    except InvalidVersion:
        return ()
    return (
        *_edits(lock, catalog, name, locked, version),
        *_remedies(lock, issues, name, version),
        *_issues(lock, issues, name, locked, version),
    )


def _locked_version(lock: Lock, name: str) -> str:
    if lock.rocm is not None and name == ROCM:
        return lock.rocm.version
    return next((component.version for component in lock.components if component.name == name), "")


def _edits(lock: Lock, catalog: Catalog, name: str, locked: str, version: str) -> Iterator[str]:
    recipe = catalog.components.get(name)
    for edit in recipe.edit if recipe is not None else ():
        applies = not edit.targets or set(edit.targets) & set(lock.request.gpu)
        if not applies or not edit.versions or not version_in(locked, edit.versions):
            continue
        if not version_in(version, edit.versions):
            yield f"the edit of {edit.file or edit.diff} (for {edit.versions}): {edit.why}"
        elif edit.absorbed and version_in(version, edit.absorbed):
            yield f"perhaps the edit of {edit.file or edit.diff} (absorbed in {edit.absorbed}): {edit.why}"


def _remedies(lock: Lock, issues: Mapping[str, Issue], name: str, version: str) -> Iterator[str]:
    for remedy in lock.in_force:
        issue = issues.get(remedy.issue)
        if issue is None or remedy.component != name:
            continue
        for fixed in issue.fixed_in:
            if fixed.component == name and version_in(version, fixed.versions):
                yield f"the remedy for {remedy.issue} (fixed in {name} {fixed.versions}: {fixed.source})"


def _issues(lock: Lock, issues: Mapping[str, Issue], name: str, locked: str, version: str) -> Iterator[str]:
    remedied = {remedy.issue for remedy in lock.in_force if remedy.component == name}
    for issue in issues.values():
        applies = not issue.targets or set(issue.targets) & set(lock.request.gpu)
        if not applies or issue.name in remedied:
            continue
        affected = issue.versions.get(name, "")
        if affected and version_in(locked, affected) and not version_in(version, affected):
            yield f"the workaround for {issue.name}: {issue.means} (known in {affected})"
            continue
        for fixed in issue.fixed_in:
            mended = version_in(version, fixed.versions) and not version_in(locked, fixed.versions)
            if fixed.component == name and mended:
                yield f"the workaround for {issue.name}: {issue.means} (fixed there: {fixed.source})"
