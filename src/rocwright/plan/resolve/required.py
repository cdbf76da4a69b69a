"""The packages that the wheels of a stack require, as they were locked next to its lock."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from rocbase.errors import InputError
from rocwright.plan.resolve.model import LockedPython

FILE = TypeAdapter(tuple[LockedPython, ...])


def path_of(lock: Path) -> Path:
    """Return the path of the file next to `lock`."""
    return lock.with_name(f"{lock.stem}.run.json")


def read(path: Path) -> tuple[LockedPython, ...]:
    """Return what was locked, the newest last; nothing if there is no file. Raises InputError for a file
    that cannot be read."""
    if not path.exists():
        return ()
    try:
        return FILE.validate_json(path.read_bytes())
    except ValidationError as error:
        raise InputError(
            f"{path} cannot be read",
            cause=f"{error.error_count()} faults, the first: {error.errors()[0]['msg']}",
            next_step="remove it: it is made anew from the package index",
        ) from error


def newest(lock: Path) -> LockedPython | None:
    """Return the packages that the last run of the stack needed; None if none were locked."""
    return next(reversed(read(path_of(lock))), None)
