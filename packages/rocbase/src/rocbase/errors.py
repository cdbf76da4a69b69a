"""Every failure a user can meet: class, exit code, what happened, the likely cause, the next step."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path


def _any_installer(program: str) -> str:
    return f"install the package of your distribution that has {program}"


how_to_install: Callable[[str], str] = _any_installer
"""Tells how a program is installed here. A program that knows the distributions puts its own in here."""


class FailureClass(StrEnum):
    """The closed set of failure classes; each has one exit code, so that scripts can tell them apart."""

    INPUT = "input"
    CONFLICT = "conflict"
    FETCH = "fetch"
    PATCH = "patch"
    COMPILE = "compile"
    OUT_OF_MEMORY = "out of memory"
    OUT_OF_DISK = "out of disk"
    TIMEOUT = "time-out"
    NETWORK = "network"
    SANDBOX = "sandbox"
    CHECK = "check"
    DISK = "disk"
    INTERNAL = "internal"
    INTERRUPTED = "interrupted"

    @property
    def exit_code(self) -> int:
        """Exit status of the command that ends with this class."""
        return _EXIT_CODES[self]


_EXIT_CODES = {
    FailureClass.INPUT: 2,
    FailureClass.CONFLICT: 3,
    FailureClass.FETCH: 4,
    FailureClass.PATCH: 5,
    FailureClass.COMPILE: 6,
    FailureClass.OUT_OF_MEMORY: 7,
    FailureClass.OUT_OF_DISK: 8,
    FailureClass.TIMEOUT: 9,
    FailureClass.NETWORK: 10,
    FailureClass.SANDBOX: 11,
    FailureClass.CHECK: 12,
    FailureClass.DISK: 14,
    FailureClass.INTERNAL: 70,
    FailureClass.INTERRUPTED: 130,
}


class ExplainedError(Exception):
    """A failure that a user can act on: `message` says what happened, `cause` why, `next_step` what to do.

    `detail` holds lines worth seeing as they are (the first error of a log, a list of names).
    `issue` names the known issue that explains it, `known_issue` says what that means, `remedy` what helps,
    in words, `heal` what `build --heal` would do about it, `remedy_unavailable` why it can do nothing.
    Subclasses only fix the failure class; the command line prints the error and exits with its code.
    """

    failure = FailureClass.INTERNAL
    retryable = False
    """Whether the same command, run at once, can be expected to succeed."""
    peak_memory: int | None = None
    """The most memory, in bytes, that was taken until then, where it was measured."""

    def __init__(
        self, message: str, *, cause: str = "", next_step: str = "", detail: str = "", subject: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.cause = cause
        self.next_step = next_step
        self.detail = detail
        self.subject = subject
        self.issue = self.known_issue = self.remedy = self.heal = self.remedy_unavailable = ""

    def as_dict(self) -> dict[str, str]:
        """The error for `--json` and for the report that a step leaves behind."""
        return {
            "class": self.failure.value,
            "message": self.message,
            "cause": self.cause,
            "next": self.next_step,
            "detail": self.detail,
            "subject": self.subject,
            "retryable": "yes" if self.retryable else "",
            "issue": self.issue,
            "known_issue": self.known_issue,
            "remedy": self.remedy,
            "heal": self.heal,
            "remedy_unavailable": self.remedy_unavailable,
        }


class InputError(ExplainedError):
    """Something that the user wrote or named is not right."""

    failure = FailureClass.INPUT


class ConflictError(ExplainedError):
    """Constraints that cannot all hold."""

    failure = FailureClass.CONFLICT


class FetchError(ExplainedError):
    """A source is not there, or is not what the lock says."""

    failure = FailureClass.FETCH


class PatchError(ExplainedError):
    """An edit or patch does not apply, or changes nothing."""

    failure = FailureClass.PATCH


class CompileError(ExplainedError):
    """A build command ended with a failure."""

    failure = FailureClass.COMPILE


class OutOfMemoryError(ExplainedError):
    """A step was ended because it wanted more memory than it may have."""

    failure = FailureClass.OUT_OF_MEMORY


class DiskError(ExplainedError):
    """A disk or file system that fails, or is not there any more."""

    failure = FailureClass.DISK


class OutOfDiskError(ExplainedError):
    """No room on the disk."""

    failure = FailureClass.OUT_OF_DISK


class StepTimeoutError(ExplainedError):
    """A step took longer than its limit."""

    failure = FailureClass.TIMEOUT


class NetworkError(ExplainedError):
    """Nothing outside answers."""

    failure = FailureClass.NETWORK


class SandboxError(ExplainedError):
    """No sandbox works, or the one chosen broke."""

    failure = FailureClass.SANDBOX


class CheckError(ExplainedError):
    """An artifact is not what it should be."""

    failure = FailureClass.CHECK


class InternalError(ExplainedError):
    """A fault of the program itself, or of its store."""

    failure = FailureClass.INTERNAL


class InterruptedByUser(ExplainedError):  # noqa: N818 - not an error of anybody's making
    """Ctrl-C."""

    failure = FailureClass.INTERRUPTED


_BY_CLASS: dict[str, type[ExplainedError]] = {
    kind.failure.value: kind for kind in ExplainedError.__subclasses__()
}


def from_dict(data: dict[str, str]) -> ExplainedError:
    """The error that `as_dict` wrote, in the reading process."""
    kind = _BY_CLASS.get(data.get("class", ""), InternalError)
    error = kind(
        data.get("message", "unknown failure"),
        cause=data.get("cause", ""),
        next_step=data.get("next", ""),
        detail=data.get("detail", ""),
        subject=data.get("subject", ""),
    )
    error.retryable = bool(data.get("retryable"))
    error.issue, error.known_issue, error.remedy = (
        data.get(name, "") for name in ("issue", "known_issue", "remedy")
    )
    return error


FAULTY = frozenset({errno.EIO, errno.EROFS, errno.ESTALE, errno.ENXIO, errno.ENODEV, errno.EUCLEAN})
"""Numbers of errors by which the kernel says that a disk, or what it is mounted from, does not work."""


def _device(path: str) -> str:
    """Return the device and the mount point of a path, as /proc/self/mountinfo has them."""
    rows = [line.split(" ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    mounts = {row[4]: row[row.index("-") + 2] for row in rows}
    places = [str(place) for place in (Path(path).absolute(), *Path(path).absolute().parents)]
    mount = next((place for place in places if place in mounts), "/")
    return f"{mounts.get(mount, 'an unknown device')} at {mount}"


def as_known(error: Exception, program: str, frees: str = "") -> ExplainedError:
    """Any failure as one that a user can read; what nobody foresaw is a fault of `program`.

    `frees` says how to see what may go from a disk that is full.
    """
    match error:
        case ExplainedError():
            return error
        case OSError() if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return OutOfDiskError(
                "the disk is full",
                cause=str(error),
                next_step=f"free some disk space{f' ({frees})' if frees else ''}, then run again",
            )
        case OSError() if error.errno in FAULTY:
            path = f"{error.filename or 'a file'}"
            return DiskError(
                f"{path} cannot be read or written",
                cause=f"{error.strerror}, on {_device(path)}",
                next_step="run it in a folder that you can write to, with ROCWRIGHT_HOME in such a folder too"
                if error.errno == errno.EROFS
                else "look at the kernel's messages (dmesg); set ROCWRIGHT_HOME to a disk that works",
            )
        case PermissionError():
            return InputError(
                f"{error.filename} cannot be read or written",
                cause=str(error),
                next_step="check its permissions, or set ROCWRIGHT_HOME to a folder that you can write to",
            )
        case RuntimeError() if "determine home directory" in str(error):
            return InputError(
                "this user has no home folder",
                cause=f"HOME is not set, and no user of this system has the number {os.getuid()}",
                next_step="set HOME to a folder that you can write to, then run again",
            )
        case _:
            return InternalError(
                f"{type(error).__name__}: {error}",
                cause=f"a fault of {program}",
                next_step=f"run again with `{program} --debug ...` and report the output as a bug",
            )
