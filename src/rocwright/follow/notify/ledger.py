"""The ledger on the disk: read and written whole, by one at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout
from pydantic import ValidationError

from rocbase.errors import InputError
from rocbase.files.atomic import write_atomic
from rocwright.follow.notify.model import Ledger
from rocwright.home import Home

# Seconds that somebody else may look and deliver before it is too long.
PATIENCE = 60.0


def read(home: Home) -> Ledger | None:
    """What is kept; None before the first look, or where it cannot be read."""
    with contextlib.suppress(OSError, ValidationError):
        return Ledger.model_validate_json(home.notices.read_bytes())
    return None


def write(home: Home, ledger: Ledger) -> None:
    """Keep it, for its owner alone."""
    write_atomic(home.notices, ledger.model_dump_json(indent=1) + "\n", mode=0o600)


@contextmanager
def alone(home: Home) -> Iterator[None]:
    """Nobody else looks meanwhile. Raises InputError where another one does for too long."""
    lock = FileLock(home.notices.with_suffix(".lock"))
    try:
        lock.acquire(timeout=PATIENCE)
    except Timeout:
        raise InputError(
            "changes are being told already",
            cause=f"another process has looked for them for more than {PATIENCE:.0f} s",
            next_step="rocwright notify status",
        ) from None
    try:
        yield
    finally:
        lock.release()
