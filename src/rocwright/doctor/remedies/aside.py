"""Locks on disk: put aside while a remedy that made them anew is on trial, and written by one alone."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from rocbase.errors import InputError
from rocbase.files.atomic import sha256_file
from rocwright.plan.resolve.files import read_lock, write_lock
from rocwright.plan.resolve.model import Lock


@dataclass(frozen=True, slots=True)
class LockSnapshots:
    """A folder of locks, each under the sha256 of its text. Losing it loses no more than exact versions."""

    folder: Path

    def put(self, lock: Lock) -> str:
        """Keep a lock; gives its name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            path = Path(scratch) / "lock"
            write_lock(path, lock)
            name = sha256_file(path)
            path.replace(self.folder / f"{name}.lock")
        return name

    def drop(self, name: str) -> None:
        """Keep that lock no longer."""
        (self.folder / f"{name}.lock").unlink(missing_ok=True)

    def get(self, name: str) -> Lock | None:
        """The lock of that name, if it is still there."""
        path = self.folder / f"{name}.lock"
        if not name or not path.exists() or sha256_file(path) != name:
            return None
        try:
            return read_lock(path)
        except InputError:
            return None


class Unshared:
    """A lock on disk that is written again and again, and by nobody else meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last = sha256_file(path)

    def write(self, lock: Lock) -> None:
        """Write the lock anew. Raises InputError where it is not as it was left."""
        if not self.path.exists() or sha256_file(self.path) != self._last:
            raise InputError(
                f"{self.path} was changed during the build",
                cause="another process wrote it: another build --heal, or rocwright lock",
                next_step="run again: finished steps are kept",
            )
        write_lock(self.path, lock)
        self._last = sha256_file(self.path)
