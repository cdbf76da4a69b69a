"""Where steps run: what every executor offers, takes and tells. rocwright.farm has those that run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from rocbase.errors import ExplainedError, SandboxError, from_dict
from rocbase.model import Frozen
from rocwright.execution.asked import Asked
from rocwright.execution.options import STEP_DEFAULTS, StepOptions
from rocwright.model.steps import Step
from rocwright.sandbox.untrusted import Untrusted
from rocwright.store.model import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOffer:
    """A place where steps can run: its cores, and bytes of memory and disk; `features` are words such as
    `network` or `gpu:gfx1151`."""

    name: str
    cores: int
    memory: int
    disk: int
    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One attempt at a step. Its inputs and outputs are in the store at that URL, and never travel with it.

    `jobs` is the most that it may have; `alone` says that nothing else may compile beside it; where some
    machine has so many bytes of `memory`, it goes there. Of those that wait, the one with the lowest
    `priority` comes first. `shards` are the keys of its shards, which have ended.
    """

    step: Step
    store: str
    jobs: int
    alone: bool = False
    memory: int = 0
    attempt: int = 1
    priority: int = 0
    options: StepOptions = STEP_DEFAULTS
    shards: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """What tells it from every other task of a build."""
        return f"{self.step.key}-{self.attempt}"

    def words(
        self, *, jobs: int, report: Path, memory: int | None = None, server: Path | None = None
    ) -> list[str]:
        """The words for `python -m rocwright.execution` where it runs: with so many jobs, at most so many
        bytes of memory, its report in that file, and that folder of a job server."""
        request = Asked(
            key=self.step.key,
            store=self.store,
            jobs=jobs,
            memory=memory,
            options=self.options,
            server=str(server) if server else None,
            shards=self.shards,
            report=str(report),
        )
        return request.words()


@dataclass(frozen=True, slots=True)
class Alone:
    """A process that by itself filled all that there was: what it is, what it had, and the limit (bytes)."""

    kind: str
    memory: int
    limit: int


@dataclass(frozen=True, slots=True)
class Queued:
    """The executor has the task; it waits for a place."""

    task: Task


@dataclass(frozen=True, slots=True)
class Started:
    """It runs, with so many jobs and at most so many bytes of memory, None for no bound."""

    task: Task
    jobs: int
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of its output."""

    task: Task
    text: str


@dataclass(frozen=True, slots=True)
class Sampled:
    """What it uses now: bytes, processes that compile or link, and how many jobs that counts as."""

    task: Task
    memory: int
    processes: int
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """It has ended: with a record, or with an error; with neither it was never started (it was cancelled
    before, or its place closed).

    `seconds` is wall time. Of a failure, `peak_memory` is the most that it took in bytes, and `too_large` a
    process that no number of jobs would have left enough. `paused` are seconds for which processes of it
    were stopped for memory, `least_jobs` and `most_jobs` how many all steps together were allowed meanwhile.
    """

    task: Task
    seconds: float = 0
    record: Record | None = None
    error: ExplainedError | None = None
    peak_memory: int | None = None
    too_large: Alone | None = None
    paused: float = 0
    least_jobs: int = 0
    most_jobs: int = 0


@dataclass(frozen=True, slots=True)
class Lost:
    """Where it ran is gone (a machine that was switched off), and nothing tells how it ended."""

    task: Task
    where: str
    cause: str


Event = Queued | Started | Line | Sampled | Ended | Lost


class Executor(Protocol):
    """Runs tasks, as a context manager: what still runs when it is left is ended.

    Of each task `Ended` or `Lost` comes last, and once; what comes later of it is not heeded.
    """

    def offers(self) -> Sequence[ExecutorOffer]:
        """The places that there are now."""
        ...

    def submit(self, task: Task) -> None:
        """Take a task whose inputs are in the store. It need not start at once."""
        ...

    def events(self) -> Iterator[Event]:
        """What has happened, in order for each task: `Started` before what it says and uses.

        Waits for a moment where nothing has happened, and may then give nothing; it is asked again as long as
        a task has not ended."""
        ...

    def cancel(self, task: Task) -> None:
        """End it, whether it waits or runs; its `Ended` comes all the same."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class StepReport(Frozen):
    """What a step's process left behind."""

    record: Record | None = None
    error: dict[str, str] | None = None
    peak_memory: int | None = None

    @classmethod
    def read(cls, path: Path) -> StepReport:
        """Read a report, empty if the process was killed before it wrote one, or wrote something else."""
        try:
            # another machine may have written it
            return cls.model_validate_json(Untrusted(path.parent, "the step").read_bytes(path.name))
        except (OSError, ValueError, SandboxError):
            return cls()


def ended(
    task: Task, report: Path, seconds: float, silent: Callable[[], ExplainedError], *, ok: bool = True
) -> Ended:
    """How a task ended, by the report that its process left and whether its exit status was `ok`; `silent`
    makes the error of one that told nothing."""
    outcome = StepReport.read(report)
    if ok and outcome.record is not None and outcome.record.key == task.step.key:
        return Ended(task=task, seconds=seconds, record=outcome.record)
    error = from_dict(outcome.error) if outcome.error is not None else silent()
    return Ended(task=task, seconds=seconds, error=error, peak_memory=outcome.peak_memory)
