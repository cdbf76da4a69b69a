"""A header that is missing, and the packages that have it."""

from __future__ import annotations

from collections.abc import Callable

from rocwright.diagnosis.diagnose import Diagnosis, KnownIssue

# The slot of a family that names a missing header.
HEADER = "header"


def with_packages(
    diagnosis: Diagnosis, base: str, packages_with: Callable[[str], tuple[str, ...]]
) -> Diagnosis:
    """The diagnosis with the packages of `base` that have the missing header, where that is the cause."""
    cause = diagnosis.cause
    if cause is None or cause.issue.filled is None or not cause.issue.filled.indexed:
        return diagnosis
    packages = packages_with(cause.slots.get(HEADER, ""))
    if not packages:
        return diagnosis
    return diagnosis.model_copy(update={"known": (_with(cause, base, packages), *diagnosis.known[1:])})


def _with(match: KnownIssue, base: str, packages: tuple[str, ...]) -> KnownIssue:
    filled = match.issue.filled
    assert filled is not None
    words = {**match.slots, "base": base, "packages": " or ".join(packages)}
    issue = match.issue.model_copy(update={"remedy": filled.indexed.format_map(words)})
    return match.model_copy(update={"issue": issue, "packages": packages})
