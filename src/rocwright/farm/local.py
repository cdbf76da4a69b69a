"""Runs steps on this machine: a process each, with a place at the job server, ended before a disk is full."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Lock
from types import TracebackType
from typing import Self

from rocbase.errors import ExplainedError, FailureClass
from rocwright.execution.disk import DiskWatch, places, stopped, storage_of, volumes
from rocwright.execution.estimate import compiles
from rocwright.execution.executor import Ended, Event, ExecutorOffer, Line, Queued, Sampled, Started, Task
from rocwright.execution.jobs.room import free_memory, read_room
from rocwright.execution.jobs.server import JobServer, Seat
from rocwright.execution.options import LOCAL, BuildOptions
from rocwright.execution.workspace import Workspace
from rocwright.farm.mailbox import Mailbox
from rocwright.farm.step import LocalStep
from rocwright.home import Home
from rocwright.store import open_store
from rocwright.store.leases import locked

# Seconds that a step has to end in order before it is killed.
GRACE = 20.0

# The part of the machine's free memory that one step may take before it is ended.
MEMORY_SHARE = 0.95

# Seconds after which steps without a place ask again: what runs may have joined the job server meanwhile.
AGAIN = 0.5

# Events that wait to be taken; a step that says more waits until they are.
MOST_EVENTS = 10_000


class LocalExecutor:
    """The executor of this machine: `options` bound its jobs and its memory, `say` is for lines for people.

    Steps wait in order of their priority until they have a seat at the job server. When a disk is nearly
    full, all that runs is ended in order and nothing more is started.
    """

    def __init__(self, home: Home, options: BuildOptions, say: Callable[[str], None]) -> None:
        self._home, self._options = home, options
        self._server = JobServer(
            home, jobs=options.jobs, memory=options.memory, sharing=options.sharing, say=say
        )
        self._disk = DiskWatch(
            where=places(home) | storage_of(options.engine, home),
            home=home,
            running=lambda: [step.task.step for step in self._running()],
            on_full=self._end_in_order,
            say=say,
        )
        self._pool = ThreadPoolExecutor(max_workers=max(4, 2 * options.jobs))
        self._queue: list[Task] = []
        self._steps: dict[str, LocalStep] = {}
        self._soon: deque[Event | BaseException] = deque()
        """Taken, and not yet given; also told by the one who takes, who cannot wait for that."""
        self._told: Mailbox[Event | BaseException] = Mailbox(MOST_EVENTS)
        self._lock = Lock()
        self._changed, self._looked, self._sampled = False, 0.0, 0.0
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._server)
            stack.enter_context(self._pool)
            stack.enter_context(self._disk.watching())
            self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._told.close()
        for step in self._running():
            step.cancel()
        self._open.__exit__(kind, error, trace)

    def offers(self) -> Sequence[ExecutorOffer]:
        """This machine, as far as the build may have it; nothing once a disk of it is nearly full."""
        if self._disk.full is not None:
            return ()
        room = read_room(self._options.memory, None)
        free = sum(volume.free for volume in volumes({"build folders": self._home.work}))
        return (ExecutorOffer(name=LOCAL, cores=self._options.jobs, memory=room.total, disk=free),)

    def submit(self, task: Task) -> None:
        self._queue.append(task)
        self._changed = True
        self._soon.append(Queued(task))

    def cancel(self, task: Task) -> None:
        with self._lock:
            step = self._steps.get(task.id)
        if step is None or step.cancel():
            self._queue = [queued for queued in self._queue if queued.id != task.id]
            self._soon.append(Ended(task=task))

    def wake(self) -> None:
        """Let `events`, which another thread waits for, give what there is at once."""
        self._told.wake()

    def events(self) -> Iterator[Event]:
        self._place()
        self._sample()
        if not self._soon:
            self._soon.extend(self._told.take(AGAIN))
        # one by one: what Ctrl-C leaves here is given the next time
        while self._soon:
            event = self._soon.popleft()
            if isinstance(event, BaseException):
                raise event
            yield event

    def _running(self) -> list[LocalStep]:
        with self._lock:
            return [*self._steps.values()]

    # places

    def _place(self) -> None:
        """Start what has a place now, where anything may have changed since the last look."""
        if not self._queue or not (self._changed or time.monotonic() - self._looked >= AGAIN):
            return
        self._changed, self._looked = False, time.monotonic()
        if self._disk.full is not None:
            for task in [*self._queue]:
                self.cancel(task)
            return
        for task, seat in self._seats():
            step = LocalStep(task, seat)
            with self._lock:
                self._steps[task.id] = step
            self._queue.remove(task)
            self._pool.submit(self._run, step)

    def _seats(self) -> Iterator[tuple[Task, Seat]]:
        """Tasks that have a place, each with it: one that is a single process always has."""
        queue = sorted(self._queue, key=lambda task: task.priority)
        for task in queue:
            if not compiles(task.step):
                yield task, self._server.small_seat(task.step)
        heavy = self._admitted([task for task in queue if compiles(task.step)])
        for count, task in enumerate(heavy):
            seat = self._server.seat(task.step, waiting=len(heavy) - count, limit=task.jobs)
            if seat is not None:
                yield task, seat

    def _admitted(self, queue: list[Task]) -> list[Task]:
        """Those that may compile beside what does: one that wants to be alone is."""
        busy = [step.task for step in self._running() if compiles(step.task.step)]
        if any(task.alone for task in busy):
            return []
        first = [task for task in queue if not task.alone]
        return first or ([] if busy else queue[:1])

    def _sample(self) -> None:
        """Tell what steps use; not where too much waits to be taken as it is."""
        if time.monotonic() - self._sampled < AGAIN:
            return
        self._sampled = time.monotonic()
        for step in self._running():
            if step.told and not self._told.full:
                seat = step.seat
                self._told.put(Sampled(step.task, seat.memory, seat.working, seat.counts))

    # one step, in a thread of its own

    def _run(self, step: LocalStep) -> None:
        try:
            event: Event | BaseException | None = self._run_seated(step)
        except BaseException as error:  # it is raised where events are taken
            event = error
        with self._lock:
            del self._steps[step.task.id]
        self._changed = True
        if event is not None:
            self._told.put(event)

    def _run_seated(self, step: LocalStep) -> Ended | None:
        """How it ended; None where it was cancelled before it began."""
        if not step.begin():
            step.seat.close()
            return None
        task, seat = step.task, step.seat
        memory = self._memory() if compiles(task.step) else None
        self._told.put(Started(task, seat.jobs, memory))
        step.told = True
        ended = step.run(
            server=self._server.folder if self._server.sharing else None,
            memory=memory,
            environment={"ROCWRIGHT_HOME": str(self._home.path), **self._server.environment},
            on_line=lambda line: self._told.put(Line(task, line)),
            full=lambda: self._disk.full is not None,
            explain=lambda error: self._for_disk(task, error),
        )
        short = ended.error is not None and ended.error.failure is FailureClass.OUT_OF_MEMORY
        if short and ended.peak_memory:
            self._server.ran_out(task.step, seat.jobs, ended.peak_memory)
        return ended

    def _memory(self) -> int:
        """What one step may take: no more than the machine has now, nor than any bound above the build."""
        free = int(free_memory() * MEMORY_SHARE)
        return min(free, self._options.memory or free, read_room(None, None).total)

    # a full disk

    def _end_in_order(self) -> None:
        """Ask what runs to end, and see to it: its sandbox goes, and nothing half-written stays."""
        running = self._running()
        for step in running:
            step.terminate()
        end = time.monotonic() + GRACE
        while any(step.alive for step in running) and time.monotonic() < end:
            time.sleep(0.05)
        for step in running:
            step.kill()

    def _for_disk(self, task: Task, failure: ExplainedError) -> ExplainedError:
        """A step's failure; that of a full disk, where a disk is nearly full, whatever the step said."""
        volume = self._disk.look()
        if volume is None:
            return failure
        folder, keep = Workspace.of(self._home, task.step.key), self._options.keep_stopped
        if not keep:
            with locked(open_store(task.store), task.step.key):
                folder.remove()
        return stopped(self._disk, volume, task.step, folder=folder.path if keep else None)
