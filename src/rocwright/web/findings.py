"""What checks found, as a page lists it."""

from __future__ import annotations

from collections.abc import Iterable

from rocwright.records.model import Finding


def once(findings: Iterable[Finding]) -> list[Finding]:
    """Each statement once, however many files and runs say it; what is wrong comes first."""
    told = {
        (one.component, one.check, one.name, one.ok, one.absent, one.detail, one.device): one
        for one in findings
    }
    return sorted(told.values(), key=lambda one: one.ok)
