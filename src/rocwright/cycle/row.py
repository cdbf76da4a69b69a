"""A row's folder: the lock of each channel, and the candidate under trial, which outlives a kill."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rocwright.cycle.model import row_name
from rocwright.flow import Project
from rocwright.resolve.files import read_lock, write_lock
from rocwright.resolve.model import Lock, Request

LOCKS = "locks"
"""The folder of all rows, beside the project file: to be committed, if one likes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One stack for a GPU on a base, followed in a project's folder."""

    request: Request
    folder: Path
    project: Project

    @classmethod
    def of(cls, request: Request, where: Path, like: Project) -> Row:
        """The row of a request in the project folder `where`; home and catalog are those of `like`."""
        folder = where / LOCKS / row_name(request)
        project = Project(
            request=request,
            lock_path=folder / "trying.lock",
            output=where / "rocwright-out" / row_name(request),
            home=like.home,
            catalog=like.catalog,
        )
        return cls(request=request, folder=folder, project=project)

    def lock(self, name: str) -> Lock | None:
        """The lock of a channel, or None. Raises InputError where it cannot be read."""
        path = self.folder / f"{name}.lock"
        return read_lock(path) if path.exists() else None

    def keep(self, name: str, lock: Lock) -> None:
        """Write a channel's lock."""
        write_lock(self.folder / f"{name}.lock", lock)

    @property
    def trying(self) -> Lock | None:
        """The candidate that was under trial when the last cycle was stopped."""
        return self.lock("trying")

    def drop_trial(self) -> None:
        """The candidate is settled."""
        (self.folder / "trying.lock").unlink(missing_ok=True)
