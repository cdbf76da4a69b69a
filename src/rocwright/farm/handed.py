"""A task on its way to another machine, and how it ended there: as text, whichever engine carries it.

What a step needs and makes is in the store that both reach, and never travels with it.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from rocbase.errors import ExplainedError, InputError, from_dict
from rocbase.model import Frozen
from rocwheel.version import __version__
from rocwright.execution.exec_step import load_step
from rocwright.execution.executor import Alone, Ended, ExecutorOffer, Task
from rocwright.execution.options import STEP_DEFAULTS, StepOptions
from rocwright.store import open_store
from rocwright.store.model import Record


class Handed(Frozen):
    """A task without its step, which is in the store. With `jobs` 0 it may have all that its machine has."""

    rocwright: str = __version__
    key: str
    store: str
    jobs: int
    alone: bool = False
    attempt: int = 1
    priority: int = 0
    options: StepOptions = STEP_DEFAULTS
    shards: tuple[str, ...] = ()

    @classmethod
    def of(cls, task: Task, jobs: int) -> Handed:
        """A task to be run elsewhere, with so many jobs."""
        return cls(
            key=task.step.key,
            store=task.store,
            jobs=jobs,
            alone=task.alone,
            attempt=task.attempt,
            priority=task.priority,
            options=task.options,
            shards=task.shards,
        )

    @property
    def id(self) -> str:
        """That of its task."""
        return f"{self.key}-{self.attempt}"

    def task(self, limit: int) -> Task:
        """The task here, where at most so many jobs can be had.

        Raises InputError where another version of rocwright planned it, or the store has not the step.
        """
        if self.rocwright != __version__:
            raise InputError(
                f"the plan was made by rocwright {self.rocwright}, and this machine has {__version__}",
                cause="another version may run the same step in another way",
                next_step="install the same version on every machine of the farm",
            )
        return Task(
            step=load_step(open_store(self.store), self.key),
            store=self.store,
            jobs=min(self.jobs or limit, limit),
            alone=self.alone,
            attempt=self.attempt,
            priority=self.priority,
            options=self.options,
            shards=self.shards,
        )


class Reply(Frozen):
    """How a task ended: with a record, an error, or, `turned_away`, because the machine takes none now."""

    seconds: float = 0
    record: Record | None = None
    error: dict[str, Any] | None = None
    peak_memory: int | None = None
    too_large: dict[str, Any] | None = None
    paused: float = 0
    least_jobs: int = 0
    most_jobs: int = 0
    turned_away: bool = False

    @classmethod
    def of(cls, ended: Ended) -> Reply:
        """What is told of an end."""
        return cls(
            seconds=ended.seconds,
            record=ended.record,
            error=ended.error.as_dict() if ended.error is not None else None,
            peak_memory=ended.peak_memory,
            too_large=asdict(ended.too_large) if ended.too_large is not None else None,
            paused=ended.paused,
            least_jobs=ended.least_jobs,
            most_jobs=ended.most_jobs,
            turned_away=ended.record is None and ended.error is None,
        )

    @classmethod
    def failed(cls, error: ExplainedError) -> Reply:
        """What is told of a task that could not be begun."""
        return cls(error=error.as_dict())

    def ended(self, task: Task) -> Ended:
        """The end of the task that it tells of."""
        return Ended(
            task=task,
            seconds=self.seconds,
            record=self.record,
            error=from_dict(self.error) if self.error is not None else None,
            peak_memory=self.peak_memory,
            too_large=Alone(**self.too_large) if self.too_large is not None else None,
            paused=self.paused,
            least_jobs=self.least_jobs,
            most_jobs=self.most_jobs,
        )


class TaskEvent(Frozen):
    """What happened to a task meanwhile: it started, with so many jobs and bytes; lines; what it uses."""

    id: str
    kind: Literal["started", "lines", "sampled"]
    jobs: int = 0
    memory: int | None = None
    processes: int = 0
    lines: tuple[str, ...] = ()


class Runs(Frozen):
    """A step on a machine: since how many seconds it is there, with which jobs and bytes; no jobs where it
    waits for a place."""

    step: str
    key: str
    seconds: float
    jobs: int = 0
    memory: int = 0


class Place(Frozen):
    """A machine and what it offers: `machine` is the architecture of its processor, `takes` whether it takes
    steps now, `why` what keeps it from that, `runs` what it has."""

    rocwright: str = __version__
    name: str
    cores: int
    memory: int
    disk: int
    machine: str = ""
    features: frozenset[str] = frozenset()
    takes: bool = True
    why: str = ""
    runs: tuple[Runs, ...] = ()

    def offer(self) -> ExecutorOffer:
        """As an executor tells it."""
        return ExecutorOffer(
            name=self.name, cores=self.cores, memory=self.memory, disk=self.disk, features=self.features
        )
