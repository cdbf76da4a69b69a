"""A run from its begin to its end, and the log of each of its steps."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from rocbase.errors import InputError, InterruptedByUser
from rocbase.files.atomic import sha256_bytes
from rocwright import __version__
from rocwright.home import Home
from rocwright.plan.resolve.model import Lock, Request
from rocwright.records.ended import ended_as, me
from rocwright.records.model import (
    Artifact,
    Finding,
    Run,
    RunOutcome,
    Said,
    Sample,
    StepRun,
    Which,
    new_run_id,
    now,
    said_of,
    with_failure,
)
from rocwright.records.recorder import RunRecorder

# Runs of which the steps are named to who looks for a log.
RECENT = 20

# Bytes of a log that are kept: a step may print without end, and what failed is told at the end.
MOST_BEGIN, MOST_END = 8 * 1024**2, 24 * 1024**2

_LEFT_OUT = re.compile(rb"^\S+ \((\d+) lines, (\d+) bytes left out\)\n$")
_LONGEST_COUNT = 200
_LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (.*)", re.DOTALL)


class UnderWay:
    """A run that goes on: what was asked, by whom, and each step as it stands; its logs lie in `folder`.

    It is on record from the first step that is noted; a run without steps leaves nothing, unless it has an
    `origin` or was given its id. `variant` is that of the row that the request goes on from, where it does.
    Left by its `with` block without having been ended, it is ended as stopped or failed. Nothing of it waits
    for the records or fails for them.
    """

    def __init__(
        self,
        command: str,
        request: Request,
        home: Home,
        say: Callable[[str], None],
        *,
        run_id: str = "",
        origin: str = "",
        lock: Lock | None = None,
        variant: str | None = None,
    ) -> None:
        self._run = Run(
            id=run_id or new_run_id(),
            command=command,
            started=now(),
            seconds=0,
            stack=request.stack,
            gpu=request.gpu,
            base=request.base,
            variant=request.variant if variant is None else variant,
            outcome="",
            state="running",
            origin=origin,
            rocwright=__version__,
            **me(),
        )
        self.id, self.folder = self._run.id, home.runs / self._run.id
        self._begun = time.monotonic()
        self._steps: list[StepRun] = []
        self._wanted = bool(run_id or origin)
        self._lock, self._locked = lock, ""
        self._keeper = RunRecorder(home, say)
        self._guard = threading.Lock()

    def note(self, step: StepRun) -> None:
        """Note how a step stands: queued, running, or how it ended. One that begins anew is another one."""
        with self._guard:
            place = next(
                (position for position, existing in enumerate(self._steps) if _same_attempt(existing, step)),
                len(self._steps),
            )
            first = not self._steps
            if first:
                self._tell_of_the_lock()
            self._steps[place : place + 1] = [step]
            self._keeper.put(self._run, {place: step}, lock=self._locked if first else "")

    def sample(self, step: str, memory: int, processes: int) -> None:
        """Note what a step uses now: bytes, and processes that compile or link."""
        offset = round(time.monotonic() - self._begun, 2)
        sample = Sample(step=step, at=offset, memory=memory, processes=processes)
        self._keeper.put(self._run, {}, [sample])

    @property
    def on_record(self) -> bool:
        """Whether it is kept: it did something, or somebody asked for it by name."""
        return bool(self._steps or self._wanted)

    def ended(
        self,
        outcome: str,
        cached: int = 0,
        *,
        findings: Sequence[Finding] = (),
        artifacts: Sequence[Artifact] = (),
    ) -> Run:
        """The run as it ended; it is on record where it did anything."""
        if self._wanted and not self._steps:
            self._tell_of_the_lock()
        devices = sorted({finding.device for finding in findings if finding.device})
        summary: Said | str = said_of(self._run.command, outcome, findings)
        updates = {
            "seconds": round(time.monotonic() - self._begun, 3),
            "ended": now(),
            "cached": cached,
            "said": summary,
            "device": ", ".join(devices),
            "steps": tuple(self._steps),
        }
        self._run = with_failure(ended_as(outcome, self._run.model_copy(update=updates)))
        if self.on_record:
            run_outcome = RunOutcome(
                run=self._run, lock=self._locked, findings=tuple(findings), artifacts=tuple(artifacts)
            )
            self._keeper.close(run_outcome)
        return self._run

    def _tell_of_the_lock(self) -> None:
        """Once, and only for a run that does something: a lock is long."""
        if self._lock is None:
            return
        self._locked = self._lock.model_dump_json(by_alias=True)
        updates = {"lock": sha256_bytes(self._locked.encode()), "versions": self._lock.versions}
        self._run = self._run.model_copy(update=updates)

    def __enter__(self) -> UnderWay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._run.state != "ended":
            self.ended("stopped" if isinstance(error, KeyboardInterrupt | InterruptedByUser) else "failed")


def _same_attempt(previous: StepRun, step: StepRun) -> bool:
    """Whether it is the same attempt at the same step."""
    return previous.name == step.name and previous.state != "ended"


def find_log(home: Home, step: str | None) -> Path:
    """The newest log of a step; where none is named, of the newest run: a failed step's, else the last one's.

    Raises InputError where there is none.
    """
    from rocwright.records.opening import read_records

    which = Which(step=step or "")
    with read_records(home) as records:
        while page := records.runs(which):
            for run in page:
                latest = [attempt for attempt in reversed(run.steps) if attempt.log]
                for attempt in sorted(latest, key=lambda attempt: attempt.outcome != "failed"):
                    path = home.runs / run.id / attempt.log
                    matching = step is None or attempt.name == step or attempt.name.startswith(f"{step}/")
                    if matching and path.exists():
                        return path
            which = replace(which, before=page[-1].number)
    names = steps_with_logs(home)
    for path in sorted(home.runs.glob(f"*/{log_name(step or '*')}"), reverse=True):
        return path
    raise InputError(
        f"there is no log of {step}" if step else "nothing has been built yet",
        cause=f"steps with logs: {', '.join(names[:20])}" if names else "no run is on record",
        next_step="rocwright build",
    )


def steps_with_logs(home: Home) -> tuple[str, ...]:
    """The steps of the newest runs that have a log, the newest first."""
    from rocwright.records.opening import read_records

    with read_records(home) as records:
        recent = records.runs(limit=RECENT)
    return tuple(dict.fromkeys(step.name for run in recent for step in run.steps if step.log))


def log_name(step: str) -> str:
    """The file name of a step's log."""
    return f"{step.replace('/', '-')}.log"


class LogFile:
    """A step's log on disk, each line with its UTC time.

    A log that grows beyond `begin` and `end` bytes loses its middle; a line in its place counts what is left
    out. At least half of the `end` bytes always stay.
    """

    def __init__(self, path: Path, *, begin: int = MOST_BEGIN, end: int = MOST_END) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # line by line: whoever looks while it runs, or after a kill, finds all that was said
        self._file = path.open("ab", buffering=0)
        self._path, self._begin, self._end = path, begin, end
        self._size = self._file.seek(0, os.SEEK_END)

    def line(self, text: str) -> None:
        self._size += self._file.write(_stamped(text))
        if self._size > self._begin + self._end:
            self._size = _shorten(self._path, self._begin, self._end // 2)

    def close(self) -> None:
        os.fsync(self._file.fileno())
        self._file.close()


def _stamped(text: str) -> bytes:
    timestamp = datetime.now(UTC)
    time_ = f"{timestamp.strftime('%Y-%m-%dT%H:%M:%S')}.{timestamp.microsecond // 1000:03d}Z"
    return f"{time_} {text}\n".encode(errors="replace")


def _shorten(path: Path, begin: int, end: int) -> int:
    """Leave out the lines between the first `begin` and the last `end` bytes, in place; return the new size.

    The file stays the same one: whoever appends to it or follows it goes on.
    """
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(begin)
        file.readline()
        place = file.tell()
        counted = _LEFT_OUT.search(file.readline(_LONGEST_COUNT))
        lines, left_out = (int(counted[1]), int(counted[2])) if counted else (0, 0)
        file.seek(place if counted is None else place + counted.end())
        while file.tell() < size - end and (line := file.readline()):
            lines, left_out = lines + 1, left_out + len(line)
        tail = file.read()
        file.seek(place)
        file.write(_stamped(f"({lines} lines, {left_out} bytes left out)") + tail)
        return file.truncate()


def parse_line(line: str) -> tuple[str, str]:
    """The UTC time and the text of a log's line; no time where it has none."""
    match = _LINE.fullmatch(line.rstrip("\n"))
    return (match[1], match[2]) if match else ("", line.rstrip("\n"))
