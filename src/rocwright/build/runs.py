"""The record of every run on this machine, with the log of each step."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from rocwright.errors import InputError
from rocwright.files import write_atomic
from rocwright.models import Frozen
from rocwright.resolve.model import Request

KEPT_RUNS = 500


class StepRun(Frozen):
    """How a step went in a run: built, reused (inputs were identical), failed, or skipped after a failure.

    "again" is a try that ran out of memory: how the second one ended comes after it, in the same log.
    `memory` is the most that it was allowed, `peak_memory` the most that it took, in bytes. `counted` is how
    many things ninja or make counted in all.
    """

    name: str
    key: str
    outcome: str
    seconds: float = 0
    log: str = ""
    error: dict[str, str] = {}
    engine: str = ""
    jobs: int = 0
    memory: int | None = None
    peak_memory: int | None = None
    compiler_cache: dict[str, int] = {}
    counted: int = 0
    paused: float = 0
    least_jobs: int = 0
    most_jobs: int = 0


class Run(Frozen):
    """One `build` or `verify`: when, what was asked, each step or check that did not come from the store."""

    id: str
    command: str
    started: str
    seconds: float
    stack: str
    gpu: tuple[str, ...]
    base: str
    outcome: str
    cached: int = 0
    steps: tuple[StepRun, ...] = ()


def new_run_id() -> str:
    """A name that sorts by time."""
    return f"{datetime.now(UTC).strftime('%Y%m%dT%H%M%S.%fZ')}-{secrets.token_hex(3)}"


class UnderWay:
    """A run from its begin: what was asked, when; its logs lie in `folder`."""

    def __init__(self, command: str, request: Request, runs_folder: Path) -> None:
        self.command, self.request, self.id = command, request, new_run_id()
        self.folder = runs_folder / self.id
        self._started, self._begun = datetime.now(UTC), time.monotonic()

    def ended(self, outcome: str, steps: Sequence[StepRun], cached: int = 0) -> Run:
        """The record of the run, kept beside its logs where it did anything."""
        run = Run(
            id=self.id,
            command=self.command,
            started=self._started.strftime("%Y-%m-%dT%H:%M:%SZ"),
            seconds=round(time.monotonic() - self._begun, 3),
            stack=self.request.stack,
            gpu=self.request.gpu,
            base=self.request.base,
            outcome=outcome,
            cached=cached,
            steps=tuple(steps),
        )
        if steps:
            save_run(self.folder.parent, run)
        return run


def save_run(folder: Path, run: Run) -> None:
    """Keep the record of a run beside its logs."""
    write_atomic(folder / run.id / "run.json", run.model_dump_json(indent=1) + "\n")


def runs(folder: Path) -> Iterator[Run]:
    """All runs, newest first; a record that a kill left unreadable is passed over."""
    for path in sorted(folder.glob("*/run.json"), reverse=True):
        try:
            yield Run.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            continue


def find_log(folder: Path, step: str | None) -> Path:
    """The newest log of a step; where none is named, of the newest run: a failed step's, else the last one's.

    Raises InputError where there is none.
    """
    names = []
    for run in runs(folder):
        latest = list(reversed(run.steps))
        for one in sorted(latest, key=lambda one: one.outcome != "failed"):
            names.append(one.name)
            path = folder / run.id / one.log
            wanted = step is None or one.name == step or one.name.startswith(f"{step}/")
            if one.log and wanted and path.exists():
                return path
    for path in sorted(folder.glob(f"*/{log_name(step or '*')}"), reverse=True):
        return path
    raise InputError(
        f"there is no log of {step}" if step else "nothing has been built yet",
        cause=f"steps with logs: {', '.join(dict.fromkeys(names[:20]))}" if names else "no run is recorded",
        next_step="rocwright build",
    )


def log_name(step: str) -> str:
    """The file name of a step's log."""
    return f"{step.replace('/', '-')}.log"


class LogFile:
    """A step's log on disk: complete, each line with its UTC time."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # line by line: whoever looks while it runs, or after a kill, finds all that was said
        self._file = path.open("a", buffering=1, encoding="utf-8", errors="replace")

    def line(self, text: str) -> None:
        now = datetime.now(UTC)
        self._file.write(f"{now.strftime('%Y-%m-%dT%H:%M:%S')}.{now.microsecond // 1000:03d}Z {text}\n")

    def close(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def read_report(path: Path) -> dict[str, object]:
    """What a step's process left behind, empty where it was killed before it could."""
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
