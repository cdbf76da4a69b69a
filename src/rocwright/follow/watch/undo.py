"""The way back from an update: the lock that was good before it, and what a lock cannot bring back."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from rocbase.errors import InputError
from rocwright.follow.watch.projects import candidate_path
from rocwright.model.architecture import described
from rocwright.plan.resolve.difference import LockDifference, difference
from rocwright.plan.resolve.files import change_request, read_lock, write_lock
from rocwright.plan.resolve.folder import PROJECT
from rocwright.plan.resolve.model import Lock, Request
from rocwright.project import Project
from rocwright.records.model import BISECT, Run, Which
from rocwright.records.read import Records

# Runs that are looked at, the newest first.
MOST_RUNS = 500

# Outcomes that say something about a lock: of a run that was stopped nobody knows.
_TELLING = ("built", "verified", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """The lock that an undo brings back, what it changes, the run that showed it to be good, and that run's
    processor and kernel if they are not this machine's."""

    lock: Lock
    run: Run
    difference: LockDifference
    kernel: str = ""


def find_good(project: Project, current: Lock, records: Records) -> Undone:
    """Find the lock that was good before the present one. Raises InputError if there is none on record."""
    request = project.request
    which = Which(stack=request.stack, gpu=request.gpu[0], base=request.base)
    looked_at: set[str] = set()
    for run in records.runs(which, limit=MOST_RUNS, steps=False):
        if run.outcome not in _TELLING or run.origin.startswith(BISECT) or run.lock in looked_at:
            continue
        looked_at.add(run.lock)
        lock = _lock_of(run, records) if run.outcome != "failed" else None
        if lock is not None and lock != current and _unpinned(lock.request) == _unpinned(request):
            kernel = _other_kernel(run, records)
            return Undone(lock=lock, run=run, difference=difference(current, lock), kernel=kernel)
    raise InputError(
        "no other lock of this project was ever good here",
        cause=f"no run on record built {request.stack} for {', '.join(request.gpu)} on {request.base} "
        "with another lock",
        next_step=f"rocwright history --stack {request.stack} shows the runs",
    )


def put_back(project: Project, good: Undone) -> Path:
    """Write the good lock and the pins that it asks for; return the file that keeps the present lock."""
    kept = candidate_path(project)
    write_lock(kept, read_lock(project.lock_path))
    pins = dict.fromkeys(project.request.versions, "") | good.lock.request.versions
    change_request(project.lock_path.with_name(PROJECT), {"versions": pins})
    write_lock(project.lock_path, good.lock)
    return kept


def _unpinned(request: Request) -> Request:
    return request.model_copy(update={"versions": {}})


def _lock_of(run: Run, records: Records) -> Lock | None:
    text = records.lock(run.lock) if run.lock else None
    with contextlib.suppress(ValidationError):
        return Lock.model_validate_json(text) if text else None
    return None


def _other_kernel(run: Run, records: Records) -> str:
    """Return the processor and kernel on which the lock was tried last, "" if it is this machine's."""
    tried = records.runs(Which(stack=run.stack, lock=run.lock), limit=MOST_RUNS, steps=False)
    for each in tried:
        for finding in records.findings(run=each.id):
            if each.machine == run.machine and finding.machine:
                return finding.machine if finding.machine != described() else ""
    return ""
