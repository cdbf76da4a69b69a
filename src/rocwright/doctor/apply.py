"""Runs the commands that help with what was found: only safe ones, each only when it is wanted."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable

from rocbase.errors import InputError
from rocbase.model import Frozen
from rocbase.processes import run as process
from rocwright.doctor.findings.model import DoctorFinding


class Applied(Frozen):
    """A command and its exit status (None: it was not wanted, or there is no such program)."""

    command: str
    status: int | None


def apply(
    findings: Iterable[DoctorFinding],
    confirm: Callable[[DoctorFinding], bool],
    attach: Callable[[list[str]], int] = process.attach,
) -> tuple[Applied, ...]:
    """Ask about each safe command once, and run it where it is wanted; no shell reads it."""
    safe = {
        finding.remedy: finding
        for finding in findings
        if finding.safe and finding.remedy and finding.grade != "ok"
    }
    return tuple(
        Applied(command=command, status=_status(command, finding, confirm, attach))
        for command, finding in safe.items()
    )


def _status(
    command: str,
    finding: DoctorFinding,
    confirm: Callable[[DoctorFinding], bool],
    attach: Callable[[list[str]], int],
) -> int | None:
    if not confirm(finding):
        return None
    try:
        return attach(shlex.split(command))
    except InputError:
        return None
