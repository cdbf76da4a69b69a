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
    wanted: Callable[[DoctorFinding], bool],
    attach: Callable[[list[str]], int] = process.attach,
) -> tuple[Applied, ...]:
    """Ask about each safe command once, and run it where it is wanted; no shell reads it."""
    safe = {one.remedy: one for one in findings if one.safe and one.remedy and one.grade != "ok"}
    return tuple(
        Applied(command=command, status=_status(command, one, wanted, attach))
        for command, one in safe.items()
    )


def _status(
    command: str,
    finding: DoctorFinding,
    wanted: Callable[[DoctorFinding], bool],
    attach: Callable[[list[str]], int],
) -> int | None:
    if not wanted(finding):
        return None
    try:
        return attach(shlex.split(command))
    except InputError:
        return None
