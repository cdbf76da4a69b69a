"""This machine as a place of a farm: it runs what is handed to it as a build here would, and tells of it."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from queue import SimpleQueue

from rocbase.errors import OutOfDiskError
from rocwright import sandbox
from rocwright.execution.executor import Ended, Event, ExecutorOffer, Line, Sampled, Started, Task
from rocwright.execution.options import BuildOptions
from rocwright.failures import as_known
from rocwright.farm.handed import Handed, Place, Reply, Runs, TaskEvent
from rocwright.farm.local import LocalExecutor
from rocwright.home import Home
from rocwright.model.architecture import host as architecture

Tell = Callable[[TaskEvent], None]
# Lines that are told at once.
MOST_LINES = 500


@dataclass(slots=True)
class _Has:
    """A task that is here: who is told of it, where its end goes, and what it has."""

    task: Task
    tell: Tell
    since: float = field(default_factory=time.monotonic)
    end: SimpleQueue[Ended | Exception] = field(default_factory=SimpleQueue)
    jobs: int = 0
    memory: int = 0

    def runs(self) -> Runs:
        """What of it others see."""
        return Runs(
            step=self.task.step.name,
            key=self.task.step.key,
            seconds=round(time.monotonic() - self.since, 1),
            jobs=self.jobs,
            memory=self.memory,
        )


class TaskHost:
    """Runs tasks for others, several at once, by one local executor; many threads may ask it to.

    One thread has to do with the executor; it is woken when something is asked of it.
    """

    def __init__(
        self, home: Home, features: frozenset[str], name: str = "", say: Callable[[str], None] = print
    ) -> None:
        self.home, self.features, self.say = home, features, say
        self.name = name or platform.node()
        self.options = BuildOptions(jobs=os.cpu_count() or 1)
        self.draining = False
        self._asked: deque[Callable[[LocalExecutor], None]] = deque()
        self._running: dict[str, _Has] = {}
        self._over = False
        self._pump = threading.Thread(target=self._serve, name="host", daemon=True)

    @cached_property
    def _executor(self) -> LocalExecutor:
        return LocalExecutor(self.home, self.options, self.say)

    def start(self) -> None:
        """Begin to take tasks; what a worker that was killed has left running is ended first."""
        sandbox.sweep()
        self._pump.start()

    def close(self) -> None:
        """End what runs, and take nothing more."""
        self._over = True
        self._executor.wake()
        self._pump.join()

    def drain(self) -> None:
        """Take nothing more; what runs goes on."""
        self.draining = True

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits."""
        return not self._running

    def place(self) -> Place:
        """What this machine is, has and offers now."""
        offers = [*self._executor.offers()]
        reason = "it was asked to end" if self.draining else "" if offers else "its disk is nearly full"
        offer = offers[0] if offers else ExecutorOffer(name="", cores=self.options.jobs, memory=0, disk=0)
        return Place(
            name=self.name,
            cores=offer.cores,
            memory=offer.memory,
            disk=offer.disk,
            machine=architecture() or "",
            features=self.features,
            takes=not reason,
            why=reason,
            runs=tuple(active.runs() for active in [*self._running.values()]),
        )

    def run(self, handed: Handed, tell: Tell) -> Reply:
        """Run a task to its end; `tell` is called by another thread with what happens to it."""
        if self.draining:
            return Reply(turned_away=True)
        try:
            task = handed.task(self.options.jobs)
        except Exception as error:
            return Reply.failed(as_known(error))
        has = self._running[task.id] = _Has(task, tell)
        self._ask(lambda executor: executor.submit(task))
        outcome = has.end.get()
        if isinstance(outcome, Exception):
            return Reply.failed(as_known(outcome))
        if isinstance(outcome.error, OutOfDiskError) and not self.place().takes:
            self.say(f"{outcome.error.message}: what runs here ends, and runs elsewhere")
            return Reply(turned_away=True)
        return Reply.of(outcome)

    def cancel(self, task_id: str) -> bool:
        """End a task; whether it was here."""
        active = self._running.get(task_id)
        if active is None:
            return False
        self._ask(lambda executor: executor.cancel(active.task))
        return True

    def _ask(self, request: Callable[[LocalExecutor], None]) -> None:
        self._asked.append(request)
        self._executor.wake()

    def _serve(self) -> None:
        try:
            with self._executor as executor:
                while not self._over:
                    while self._asked:
                        self._asked.popleft()(executor)
                    self._take([*executor.events()])
        except Exception as error:
            # nothing is taken any more, and whoever waits is told why
            self.draining = True
            for active in [*self._running.values()]:
                active.end.put(error)

    def _take(self, events: list[Event]) -> None:
        lines: dict[str, list[str]] = {}
        for event in events:
            active = self._running.get(event.task.id)
            if active is None:
                continue
            task_id = event.task.id
            match event:
                case Line():
                    some = lines.setdefault(task_id, [])
                    some.append(event.text)
                    if len(some) >= MOST_LINES:
                        self._lines(task_id, lines)
                case Started():
                    active.jobs = event.jobs
                    active.tell(TaskEvent(id=task_id, kind="started", jobs=event.jobs, memory=event.memory))
                case Sampled():
                    self._lines(task_id, lines)
                    active.memory = event.memory
                    used = {"jobs": event.jobs, "memory": event.memory, "processes": event.processes}
                    active.tell(TaskEvent(id=task_id, kind="sampled", **used))
                case Ended():
                    self._lines(task_id, lines)
                    del self._running[task_id]
                    active.end.put(event)
                case _:
                    pass
        for task_id in [*lines]:
            self._lines(task_id, lines)

    def _lines(self, task_id: str, lines: dict[str, list[str]]) -> None:
        some = lines.pop(task_id, [])
        if some and task_id in self._running:
            self._running[task_id].tell(TaskEvent(id=task_id, kind="lines", lines=tuple(some)))
