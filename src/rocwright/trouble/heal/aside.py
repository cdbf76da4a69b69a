"""Locks put aside while a remedy that made them anew is on trial."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from rocwright.errors import InputError
from rocwright.files import sha256_file
from rocwright.resolve.files import read_lock, write_lock
from rocwright.resolve.model import Lock


@dataclass(frozen=True, slots=True)
class Aside:
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

    def get(self, name: str) -> Lock | None:
        """The lock of that name, if it is still there."""
        path = self.folder / f"{name}.lock"
        if not name or not path.exists() or sha256_file(path) != name:
            return None
        try:
            return read_lock(path)
        except InputError:
            return None
