"""A row's folder: the lock of each channel, and the candidate under trial, which outlives a kill."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from rocbase.files.atomic import sha256_bytes, write_atomic
from rocbase.folders.links import through_no_link
from rocbase.model import canonical_json
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import read_lock, write_lock
from rocwright.plan.resolve.model import Lock, Request
from rocwright.project import Project

# The folder of all rows, beside the project file: to be committed, if one likes.
LOCKS = "locks"

# Beside the lock that failed: what it was built of.
FAILED_AS = "failed.sha256"


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedRow:
    """One stack for a GPU on a base, followed in a project's folder."""

    request: Request
    folder: Path
    project: Project

    @classmethod
    def of(cls, request: Request, project_folder: Path, like: Project) -> FollowedRow:
        """The row of a request in `project_folder`; home and catalog are those of `like`."""
        folder, outputs = project_folder / LOCKS / request.name, project_folder / "rocwright-out"
        project = Project(
            request=request,
            row=request,
            lock_path=folder / "trying.lock",
            output=through_no_link(outputs / request.name, outputs),
            home=like.home,
            catalog=like.catalog,
        )
        return cls(request=request, folder=through_no_link(folder, project_folder), project=project)

    def aside(self, folder: Path) -> FollowedRow:
        """The same row, whose new locks go to another folder."""
        return replace(
            self, project=replace(self.project, lock_path=folder / self.folder.name / "trying.lock")
        )

    def lock(self, name: str) -> Lock | None:
        """The lock of a channel, or None. Raises InputError where it cannot be read."""
        path = self.folder / f"{name}.lock"
        return read_lock(path) if path.exists() else None

    def keep(self, name: str, lock: Lock) -> None:
        """Write a channel's lock."""
        write_lock(self.folder / f"{name}.lock", lock)

    def hold(self, channel: str, lock: Lock) -> None:
        """Make a lock what a channel holds; a clean-up leaves alone what it is built of."""
        plan = make_plan(lock, self.project.catalog)
        write_atomic(self.project.plan_path(channel), plan.model_dump_json(by_alias=True))
        self.keep(channel, lock)

    @property
    def trying(self) -> Lock | None:
        """The candidate that was under trial when the last cycle was stopped."""
        return self.lock("trying")

    @property
    def failed(self) -> tuple[Lock, str] | None:
        """The candidate that failed last, and what it was built of then."""
        lock, mark = self.lock("failed"), self.folder / FAILED_AS
        return (lock, mark.read_text().strip() if mark.exists() else "") if lock is not None else None

    def keep_failed(self, lock: Lock) -> None:
        """Keep a candidate that failed, so that it is not tried again as it is."""
        self.keep("failed", lock)
        write_atomic(self.folder / FAILED_AS, f"{self.built_of(lock)}\n")

    def built_of(self, lock: Lock) -> str:
        """A sha256 over all that a lock is built and checked by: a mended recipe changes it too."""
        catalog = self.project.catalog
        keys = sorted(step.key for step in make_plan(lock, catalog).steps)
        checks = [
            check.model_dump(mode="json")
            for part in lock.components
            for check in catalog.component(part.name).check
        ]
        return sha256_bytes(canonical_json([keys, checks]))

    def drop_trial(self) -> None:
        """The candidate is settled."""
        (self.folder / "trying.lock").unlink(missing_ok=True)
