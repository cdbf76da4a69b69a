"""The command that every engine runs inside, and the reading of its output.

A shell of the root sets umask and directory, tells that it begins, runs the job with the job's environment
alone, and ends with the job's status. So what comes before the begin is the engine's own trouble.

A job cannot forge how it ended. The begin is the one thing that is told on the output, before the job
exists; every later line, whatever it says, is output. The status goes from the job to the shell, from the
shell to the engine and from the engine to its caller as an exit status, which the kernel hands to the parent
alone: no word, no descriptor and no file carries it. A shell that is killed ends by a signal, which no
engine tells as 0. (Who may trace the job's processes may trace its shell: the processes of a job are one
party, and no engine tells between them.)
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from rocbase.errors import InputError
from rocwright.sandbox.model import SandboxJob

_REPORTED = """exec 2>&1
umask 022
cd -- "$2" || { printf '%s nowhere\n' "$1"; exit 125; }
printf '%s begin\n' "$1"
shift 2
"$@"
exit "$?"
"""
_PLAIN = """umask 022
cd -- "$1" || exit 125
shift
exec "$@"
"""
_CHILD_GROUPS = """umask 022
cd -- "$1" || exit 125
shift
"$@"
exit "$?"
"""
_MOST_NOISE = 200


def new_token() -> str:
    """A word that no engine says by chance."""
    return f"rocwright-{secrets.token_hex(12)}"


def told(job: SandboxJob, token: str) -> tuple[str, ...]:
    """The command for a job whose begin is told on its output with `token`; its errors go to its output."""
    return _shell(_REPORTED, token, job.workdir, *_bare(job))


def plain(job: SandboxJob) -> tuple[str, ...]:
    """The command for a job on a terminal: nothing is told."""
    return _shell(_PLAIN, job.workdir, *_bare(job))


def below_shell(job: SandboxJob) -> tuple[str, ...]:
    """The same with a shell as the first process, which stays: the job is its child."""
    return _shell(_CHILD_GROUPS, job.workdir, *_bare(job))


def _shell(script: str, *words: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script, "sh", *words)


def _bare(job: SandboxJob) -> tuple[str, ...]:
    for name in job.env:
        if not name or name.startswith("-") or "=" in name:
            raise InputError(
                f"{name!r} is not the name of an environment variable",
                cause="it is empty, starts with a dash or has an equals sign",
                next_step="correct the name in the recipe",
            )
    if not job.argv:
        raise InputError(
            "a job needs a command",
            cause="its list of arguments is empty",
            next_step="give at least the program to run",
        )
    return ("/usr/bin/env", "-i", *(f"{key}={value}" for key, value in job.env.items()), *job.argv)


@dataclass(slots=True)
class Reader:
    """Hands the job's lines on and keeps the engine's, the last of them.

    `noise` is what the engine said; `nowhere` tells that the job's directory is not there.
    """

    token: str
    on_line: Callable[[str], None]
    begun: bool = False
    nowhere: bool = False
    noise: deque[str] = field(default_factory=lambda: deque(maxlen=_MOST_NOISE))

    def line(self, text: str) -> None:
        """Take one line of output: the engine's own until the job begins, the job's from then on."""
        if self.begun:
            self.on_line(text)
            return
        head, mark, _ = text.partition(f"{self.token} begin")
        self.begun = bool(mark)
        self.nowhere = self.nowhere or f"{self.token} nowhere" in text
        if head:
            self.noise.append(head)

    def error(self, text: str) -> None:
        """Take one line of the engine's errors; the job has none of its own."""
        self.noise.append(text)
