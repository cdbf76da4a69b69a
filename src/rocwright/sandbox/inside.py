"""The command that every engine runs inside, and the reading of its output.

A shell of the root sets umask and directory, tells that it has begun, runs the job with the job's environment
alone, and tells the exit status. So all engines report alike: what comes before the begin is the engine's own
trouble, and no exit status is lost on the way out.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from rocwright.errors import InputError
from rocwright.sandbox.model import Job

_TOLD = """exec 2>&1
umask 022
token=$1
cd -- "$2" || { printf '%s nowhere\\n' "$token"; exit 125; }
shift 2
printf '%s begin\\n' "$token"
"$@"
printf '%s end %d\\n' "$token" "$?"
"""
_PLAIN = """umask 022
cd -- "$1" || exit 125
shift
exec "$@"
"""


def new_token() -> str:
    """A word that no job prints by chance."""
    return f"rocwright-{secrets.token_hex(12)}"


def told(job: Job, token: str) -> tuple[str, ...]:
    """The command for a job whose begin and end are told on its output with `token`."""
    return ("/bin/sh", "-c", _TOLD, "sh", token, job.workdir, *_bare(job))


def plain(job: Job) -> tuple[str, ...]:
    """The command for a job on a terminal: nothing is told."""
    return ("/bin/sh", "-c", _PLAIN, "sh", job.workdir, *_bare(job))


def _bare(job: Job) -> tuple[str, ...]:
    for name in job.env:
        if not name or name.startswith("-") or "=" in name:
            raise InputError(f"{name!r} is not the name of an environment variable")
    if not job.argv:
        raise InputError("a job needs a command")
    return ("/usr/bin/env", "-i", *(f"{key}={value}" for key, value in job.env.items()), *job.argv)


@dataclass(slots=True)
class Reader:
    """Hands the job's lines on and keeps the rest.

    `noise` is what was said before the begin; `nowhere` tells that the job's directory is not there.
    """

    token: str
    on_line: Callable[[str], None]
    begun: bool = False
    nowhere: bool = False
    status: int | None = None
    noise: list[str] = field(default_factory=list)

    def line(self, text: str) -> None:
        """Take one line of merged output."""
        if not self.begun:
            before, found, _ = text.partition(f"{self.token} begin")
            self.begun = bool(found)
            self.nowhere = self.nowhere or f"{self.token} nowhere" in text
            if before:
                self.noise.append(before)
        elif self.status is None:
            before, found, after = text.partition(f"{self.token} end ")
            if found:
                self.status = int(after)
            if before or not found:
                self.on_line(before)
