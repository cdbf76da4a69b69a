"""The executor `slurm`: each step is a batch job of a cluster that Slurm manages.

The build stays and watches: which step comes next, it decides itself. Machines of the cluster see the folder
of jobs and the store at the same paths.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Self

from rocbase.errors import (
    ExplainedError,
    InputError,
    InternalError,
    NetworkError,
    OutOfMemoryError,
    SandboxError,
    StepTimeoutError,
)
from rocbase.folders.temporary import temporary_folder
from rocbase.processes import run as process
from rocbase.processes.python import python_module
from rocbase.units import count, printable, size
from rocwright.config import config
from rocwright.execution.estimate import most_jobs
from rocwright.execution.executor import Ended, Event, ExecutorOffer, Line, Lost, Queued, Started, Task, ended
from rocwright.execution.killed import interrupted
from rocwright.execution.options import BuildOptions
from rocwright.farm.handed import Place
from rocwright.farm.needs import NETWORK, fit_for, nobody_has
from rocwright.home import Home
from rocwright.model.architecture import host
from rocwright.sandbox.untrusted import Untrusted

# Seconds between two looks at what the cluster says.
POLL = 1.0

# Seconds that one of Slurm's programs may take.
ANSWER = 60.0

# Seconds for which a report is waited for that a file system between machines shows late.
LATE = 15.0

# Of a log, read at once.
MOST_BYTES = 1024 * 1024

# Seconds between two words about what waits for room in the cluster.
WAITS = 60.0

# Of those that wait, how many are named at once.
MOST_NAMED = 3

# Bytes that a step gets at least: those that run no compilers say nothing of theirs.
LEAST_MEMORY = 768 * 1024 * 1024

# Bytes of a job that are the process's that watches the sandbox; the rest is the step's.
OWN_MEMORY = 256 * 1024 * 1024

REVOKED_STATES = ("NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED", "REQUEUED")
OVER = ("COMPLETED", "FAILED", "OUT_OF_MEMORY", "TIMEOUT", "DEADLINE", "CANCELLED", *REVOKED_STATES)


@dataclass(slots=True)
class _Job:
    """A batch job: its number, its task, what it has, and how far its log was read."""

    number: str
    task: Task
    jobs: int
    memory: int
    report: Path
    log: Path
    node: str = ""
    begun: float = 0
    over: float = 0
    cancelled: bool = False
    file: BufferedReader | None = None
    held: bytes = b""

    def lines(self) -> Iterator[str]:
        """What it said since the last time."""
        if self.file is None:
            try:
                self.file = Untrusted(self.log.parent, self.task.step.name).open(self.log.name)
            except (FileNotFoundError, SandboxError):
                return
        while chunk := self.file.read(MOST_BYTES):
            *complete, self.held = (self.held + chunk).replace(b"\r", b"\n").split(b"\n")
            yield from (line.decode(errors="replace") for line in complete)
            if len(self.held) > MOST_BYTES:
                yield self.held.decode(errors="replace")
                self.held = b""

    def close(self) -> Iterator[str]:
        """The rest of what it said."""
        yield from self.lines()
        if self.held:
            yield self.held.decode(errors="replace")
        if self.file is not None:
            self.file.close()


@dataclass(frozen=True, slots=True)
class _State:
    """What the cluster says of a job: its state, its machine, and why it waits."""

    state: str = ""
    node: str = ""
    reason: str = ""


@dataclass(slots=True)
class _Cluster:
    """Slurm's own programs, asked with the settings of this machine."""

    partition: str
    options: tuple[str, ...]

    def ask(self, *words: str, stdin: bytes | None = None) -> process.Finished:
        """Raises NetworkError where the cluster does not answer."""
        answer = process.run(words, stdin=stdin, timeout=ANSWER)
        if answer.timed_out or "Unable to contact slurm controller" in answer.stderr:
            raise NetworkError(
                "the cluster does not answer",
                cause=answer.stderr.strip() or f"{words[0]} took more than {ANSWER:.0f} s",
                next_step="sinfo tells how it stands; what was finished is in the store",
            )
        return answer

    def places(self) -> list[Place]:
        """The machines that take jobs."""
        chosen = [f"--partition={self.partition}"] if self.partition else []
        states = "--states=idle,mixed,allocated,completing,planned"
        words = ("--noheader", "--Node", "--responding", states, *chosen)
        answer = self.ask("sinfo", *words, "--format=%N|%c|%m|%d")
        if not answer.ok:
            raise NetworkError(
                "the cluster does not say which machines it has",
                cause=answer.stderr.strip() or f"sinfo ended with {answer.returncode}",
                next_step="run sinfo: is this a machine of the cluster, and is SLURM_CONF right?",
            )
        by_name = {}
        for line in answer.stdout.splitlines():
            name, cores, memory, disk = line.strip().split("|")
            by_name[name] = Place(
                name=name,
                cores=int(cores),
                memory=int(memory) * 1024 * 1024,
                # 0 where it is not said
                disk=int(disk) * 1024 * 1024 or sys.maxsize,
                machine=host() or "",
                features=frozenset({NETWORK}),
            )
        return [*by_name.values()]

    def submit(self, name: str, words: Sequence[str], job: _Job, minutes: int) -> None:
        """Hand a job over. Raises InputError where the cluster refuses it."""
        answer = self.ask(
            "sbatch",
            "--parsable",
            "--no-requeue",
            f"--job-name=rocwright-{name}",
            f"--cpus-per-task={job.jobs}",
            f"--mem={-(-job.memory // 2**20)}M",
            f"--time={minutes}",
            f"--output={job.log}",
            *([f"--partition={self.partition}"] if self.partition else []),
            *self.options,
            stdin=f"#!/bin/sh\nexec {shlex.join(words)}\n".encode(),
        )
        if not answer.ok:
            raise InputError(
                f"the cluster refuses {name}, which asks for {size(job.memory)} and {job.jobs} cores",
                cause=answer.stderr.strip().removeprefix("sbatch: error: "),
                next_step="sinfo tells what its machines have; config.toml names a partition: [slurm]",
            )
        job.number = answer.stdout.strip().partition(";")[0]

    def states(self) -> dict[str, _State]:
        """How each of this user's jobs is, by number."""
        answer = self.ask("squeue", "--noheader", "--me", "--states=all", "--format=%i|%T|%N|%r")
        rows = (line.strip().split("|", 3) for line in answer.stdout.splitlines())
        return {row[0]: _State(*row[1:]) for row in rows if len(row) == 4}

    def cancel(self, number: str) -> None:
        """End a job, whether it waits or runs."""
        self.ask("scancel", number)


@dataclass(slots=True)
class SlurmExecutor:
    """Hands tasks to Slurm. Raises InputError, when it is entered, where Slurm is not installed."""

    home: Home
    options: BuildOptions
    say: Callable[[str], None]
    _jobs: dict[str, _Job] = field(default_factory=dict)
    _soon: deque[Event] = field(default_factory=deque)
    _looked: float = 0
    _said: float = 0
    _folder: Path = Path()
    _places: list[Place] = field(default_factory=list)
    _open: ExitStack = field(default_factory=ExitStack)

    @property
    def _cluster(self) -> _Cluster:
        settings = config().slurm
        return _Cluster(settings.partition, settings.options)

    def __enter__(self) -> Self:
        self._places = self._cluster.places()
        place = Path(config().slurm.folder or self.home.work).expanduser()
        place.mkdir(parents=True, exist_ok=True)
        self._folder = self._open.enter_context(temporary_folder("slurm", place=place))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for job in self._jobs.values():
            self._cluster.cancel(job.number)
        self._open.close()

    def offers(self) -> Sequence[ExecutorOffer]:
        return [place.offer() for place in self._places]

    def submit(self, task: Task) -> None:
        self._soon.append(Queued(task))
        places = {place.name: place for place in self._places}
        fit = [places[name] for name in fit_for(task, places)]
        if not fit:
            self._soon.append(Ended(task=task, error=nobody_has(task.step, self._places)))
            return
        lowered = task.jobs if task.jobs < self.options.jobs else sys.maxsize
        largest = max(fit, key=lambda place: (place.cores, place.memory))
        jobs = most_jobs(task.step, min(lowered, largest.cores))
        required = max(LEAST_MEMORY, OWN_MEMORY + task.step.resources.memory * jobs, task.memory)
        memory = min(required, largest.memory)
        report, log = (self._folder / f"{task.id}.{end}" for end in ("json", "log"))
        job = _Job("", task, jobs, memory, report, log)
        words = task.words(jobs=jobs, memory=memory - OWN_MEMORY, report=report)
        minutes = int(task.step.resources.limit // 60) + 2
        try:
            self._cluster.submit(task.step.name, python_module("rocwright.execution", *words), job, minutes)
        except ExplainedError as error:
            self._soon.append(Ended(task=task, error=error))
            return
        self._jobs[task.id] = job

    def cancel(self, task: Task) -> None:
        job = self._jobs.get(task.id)
        if job is not None:
            job.cancelled = True
            self._cluster.cancel(job.number)

    def events(self) -> Iterator[Event]:
        while self._soon:
            yield self._soon.popleft()
        time.sleep(max(0.0, self._looked + POLL - time.monotonic()))
        self._looked = time.monotonic()
        states = self._cluster.states() if self._jobs else {}
        self._say_waiting(states)
        for job in [*self._jobs.values()]:
            state = states.get(job.number, _State())
            yield from self._job_events(job, state.state, state.node)

    def _say_waiting(self, states: dict[str, _State]) -> None:
        """Say of what has no machine yet why that is, by the cluster's word for it."""
        by_step = {job.task.step.name: states.get(job.number, _State()) for job in self._jobs.values()}
        # at first it has no reason: the cluster has not looked at it
        waits = {name: state.reason for name, state in by_step.items() if state.state == "PENDING"}
        waits = {name: printable(reason) for name, reason in waits.items() if reason not in ("", "None")}
        if not waits:
            self._said = 0
        elif not self._said or self._looked - self._said > WAITS:
            self._said = self._looked
            named = [f"{name} waits for room: {reason}" for name, reason in waits.items()][:MOST_NAMED]
            unnamed = len(waits) - len(named)
            self.say("; ".join([*named, *([f"so do {count(unnamed, 'other step')}"] if unnamed else [])]))

    def _job_events(self, job: _Job, state: str, node: str) -> Iterator[Event]:
        if not job.begun and (state not in ("PENDING", "CONFIGURING") or job.log.exists()) and node:
            job.node, job.begun = node, time.monotonic()
            yield Started(job.task, job.jobs, job.memory)
        for line in job.lines():
            yield Line(job.task, line)
        if state and state not in OVER:
            return
        # it has ended, or the cluster knows it no more
        job.over = job.over or time.monotonic()
        silent = self._silent(job, state)
        late = time.monotonic() - job.over < LATE
        if (
            not job.report.exists()
            and late
            and not (job.cancelled or state in (*REVOKED_STATES, "CANCELLED"))
        ):
            return
        del self._jobs[job.task.id]
        for line in job.close():
            yield Line(job.task, line)
        if job.report.exists() or not (state in REVOKED_STATES or not state) or job.cancelled:
            seconds = job.over - (job.begun or job.over)
            yield ended(job.task, job.report, seconds, lambda: silent)
        else:
            reason = f"the cluster says {state}" if state else "the cluster knows nothing of it any more"
            yield Lost(job.task, job.node or "the cluster", reason)

    def _silent(self, job: _Job, state: str) -> ExplainedError:
        """The error of a job that left no report."""
        match state:
            case "OUT_OF_MEMORY":
                return OutOfMemoryError(
                    f"the step took more than {size(job.memory)}",
                    cause=f"Slurm ended it on {job.node}",
                    next_step="it is tried once more, with half the jobs",
                )
            case "TIMEOUT" | "DEADLINE":
                return StepTimeoutError(
                    "the step took longer than the cluster lets it",
                    cause=f"Slurm ended it on {job.node}: {state}",
                    next_step="name a partition with more time in config.toml: [slurm]",
                )
            case "CANCELLED":
                return interrupted()
        return InternalError(
            f"the step's job {job.number} ended on {job.node or 'the cluster'} and told nothing",
            cause=f"the cluster says {state or 'nothing of it'}; that machine may not see {sys.executable} "
            f"or {job.report.parent}",
            next_step="config.toml names a folder that all machines see: [slurm] folder",
        )
