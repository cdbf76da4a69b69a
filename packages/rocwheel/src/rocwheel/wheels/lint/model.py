"""A finding: something about a file that its user or builder should know."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    """How bad a finding is: an `error` breaks or betrays, a `warning` may, a `note` only tells."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """What was found in the file `path` (empty: in the wheel as a whole), of which `kind`, and what to do."""

    grade: Grade
    kind: str
    path: str
    what: str
    next_step: str = ""
