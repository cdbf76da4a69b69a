"""This machine as a place of a farm: it runs what is handed to it as a build here would, and tells of it."""

from __future__ import annotations

import os
import platform
import threading
from collections import deque
from collections.abc import Callable
from functools import cached_property
from queue import SimpleQueue

from rocwright.execution.executor import Ended, Event, Line, Sampled, Started, Task
from rocwright.execution.options import Options
from rocwright.failures import as_known
from rocwright.farm.handed import Handed, Place, Reply, Told
from rocwright.farm.local import LocalExecutor
from rocwright.home import Home
from rocwright.machine.architecture import host as architecture

Tell = Callable[[Told], None]
MOST_LINES = 500
"""Lines that are told at once."""


class Host:
    """Runs tasks for others, several at once, by one local executor; many threads may ask it to.

    One thread has to do with the executor; it is woken when something is asked of it.
    """

    def __init__(self, home: Home, features: frozenset[str], say: Callable[[str], None] = print) -> None:
        self.home, self.features, self.say = home, features, say
        self.options = Options(jobs=os.cpu_count() or 1)
        self.draining = False
        self._asked: deque[Callable[[LocalExecutor], None]] = deque()
        self._running: dict[str, tuple[Task, Tell, SimpleQueue[Ended | Exception]]] = {}
        self._over = False
        self._pump = threading.Thread(target=self._serve, name="host", daemon=True)

    @cached_property
    def _executor(self) -> LocalExecutor:
        return LocalExecutor(self.home, self.options, self.say)

    def start(self) -> None:
        """Begin to take tasks."""
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

    def place(self) -> Place | None:
        """What this machine offers now; None where it takes nothing."""
        offers = [] if self.draining else [*self._executor.offers()]
        if not offers:
            return None
        [offer] = offers
        return Place(
            name=platform.node(),
            cores=offer.cores,
            memory=offer.memory,
            disk=offer.disk,
            machine=architecture() or "",
            features=self.features,
        )

    def run(self, handed: Handed, tell: Tell) -> Reply:
        """Run a task to its end; `tell` is called by another thread with what happens to it."""
        if self.draining:
            return Reply(turned_away=True)
        try:
            task = handed.task(self.options.jobs)
        except Exception as error:
            return Reply.failed(as_known(error))
        end: SimpleQueue[Ended | Exception] = SimpleQueue()
        self._running[task.id] = (task, tell, end)
        self._ask(lambda executor: executor.submit(task))
        told = end.get()
        if isinstance(told, Exception):
            return Reply.failed(as_known(told))
        return Reply.of(told)

    def cancel(self, task_id: str) -> bool:
        """End a task; whether it was here."""
        known = self._running.get(task_id)
        if known is None:
            return False
        self._ask(lambda executor: executor.cancel(known[0]))
        return True

    def _ask(self, what: Callable[[LocalExecutor], None]) -> None:
        self._asked.append(what)
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
            for _, _, end in [*self._running.values()]:
                end.put(error)

    def _take(self, events: list[Event]) -> None:
        lines: dict[str, list[str]] = {}
        for event in events:
            known = self._running.get(event.task.id)
            if known is None:
                continue
            task, tell, end = known
            match event:
                case Line():
                    some = lines.setdefault(task.id, [])
                    some.append(event.text)
                    if len(some) >= MOST_LINES:
                        self._lines(task.id, lines)
                case Started():
                    tell(Told(id=task.id, kind="started", jobs=event.jobs, memory=event.memory))
                case Sampled():
                    self._lines(task.id, lines)
                    tell(
                        Told(
                            id=task.id,
                            kind="sampled",
                            jobs=event.jobs,
                            memory=event.memory,
                            processes=event.processes,
                        )
                    )
                case Ended():
                    self._lines(task.id, lines)
                    del self._running[task.id]
                    end.put(event)
                case _:
                    pass
        for task_id in [*lines]:
            self._lines(task_id, lines)

    def _lines(self, task_id: str, lines: dict[str, list[str]]) -> None:
        some = lines.pop(task_id, [])
        if some and task_id in self._running:
            self._running[task_id][1](Told(id=task_id, kind="lines", lines=tuple(some)))
