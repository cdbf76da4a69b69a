"""What goes wrong with the database of the records, in words; nothing of SQLAlchemy is loaded for it."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

from rocbase.errors import ExplainedError, InputError, InternalError, NetworkError, OutOfDiskError

# Seconds that somebody else may write before it is too long.
WAIT = 5.0

# The codes of what may go well the next time.
AGAIN = {"SQLITE_BUSY_SNAPSHOT", "SQLITE_LOCKED", "40001", "40P01"}

TRIES = 3

# How PostgreSQL's codes begin where it cannot be reached, or goes away.
_MISSING = ("08", "57P")


def read_only(place: str, cause: str = "") -> InputError:
    """The failure to write where that is not allowed."""
    return InputError(
        f"the records at {place} are not writable",
        cause=cause or "the file, its folder or the database is read-only for this user",
        next_step="make that place writable for you, or set ROCWRIGHT_RECORDS to one of your own",
    )


def explained(error: BaseException | None, place: str, *, cut: bool = False) -> ExplainedError:
    """What a driver raised, in words; `cut` tells that the connection went away."""
    code, message = code_of(error), str(error).strip()
    if code in {"SQLITE_FULL", "53100"} or (code.startswith("SQLITE_IOERR") and _full(place)):
        return OutOfDiskError(
            f"the disk of the records at {place} is full",
            cause=message,
            next_step="free some disk space there; what could not be written is kept and recorded later",
        )
    match code:
        case "SQLITE_PERM" | "25006" | "42501" | "SQLITE_CANTOPEN":
            return read_only(place, message)
        case "SQLITE_NOTADB":
            return damaged(place, message)
        case "55P03":
            return _locked(place, message)
    if code.startswith("SQLITE_READONLY"):
        return read_only(place, message)
    if code.startswith("SQLITE_CORRUPT"):
        return damaged(place, message)
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return _locked(place, message)
    if code.startswith(_MISSING) or (not code and cut) or _no_server(error):
        return NetworkError(
            f"the database server of the records does not answer: {place}",
            cause=message.splitlines()[0] if message else "the connection was closed without a message",
            next_step="start the server, or correct ROCWRIGHT_RECORDS",
        )
    return InternalError(
        f"the records at {place} cannot be used",
        cause=f"{message} {code}".strip(),
        next_step="rocwright records check shows whether they are damaged; check the disk and the server",
    )


def damaged(place: str, cause: str) -> InternalError:
    """The failure of a database that is no longer whole."""
    return InternalError(
        f"the records at {place} are damaged",
        cause=cause,
        next_step="rocwright records check --repair recovers what can be read; artifacts are not touched",
    )


def _locked(place: str, cause: str) -> InternalError:
    return InternalError(
        f"the records at {place} were locked for more than {WAIT:.0f} s",
        cause=f"another program has them locked: {cause}",
        next_step="close whatever has them open (a database browser, a backup), then run again",
    )


def code_of(error: BaseException | None) -> str:
    """SQLite's name of the failure, or PostgreSQL's five signs."""
    code: Any = getattr(error, "sqlite_errorname", None) or getattr(error, "sqlstate", None)
    return str(code or "")


def _full(file: str) -> bool:
    """Whether there is no room for what SQLite writes beside a file."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(Path(file).parent).free < 2**16
    return False


def _no_server(error: BaseException | None) -> bool:
    # a connection that never came about has no code
    return type(error).__module__.startswith("psycopg") and not code_of(error)
