"""The executor `dask`: steps run on the workers of a coordinator, or of one that a build has for itself."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from distributed import KilledWorker

from rocbase.errors import NetworkError
from rocwright.config import config
from rocwright.execution.estimate import compiles
from rocwright.execution.executor import (
    Ended,
    Event,
    ExecutorOffer,
    Line,
    Lost,
    Queued,
    Sampled,
    Started,
    Task,
)
from rocwright.execution.options import BuildOptions
from rocwright.farm.dask import worker as remote
from rocwright.farm.dask.client import connect
from rocwright.farm.dask.cluster import cluster_of, local_cluster
from rocwright.farm.dask.security import security_of
from rocwright.farm.handed import Handed, Place, Reply, TaskEvent
from rocwright.farm.mailbox import Mailbox
from rocwright.farm.needs import fit_for, nobody_has
from rocwright.farm.placing import Placed, Waiting, others_have
from rocwright.home import Home

if TYPE_CHECKING:
    from distributed import Future

WAIT = 0.5
# Seconds for which what the workers offer is taken as known.
LOOK = 5.0

# Seconds that a build waits for the first worker.
FIRST = 20.0

# What dask calls the state of a result that it does not have yet, or not any more.
UNFINISHED = frozenset({"pending", "lost"})

MOST_EVENTS = 10_000


class DaskExecutor:
    """Hands tasks to dask's workers. Which machines are fit for a task is decided here, by what they offer;
    which of them runs it, by dask.

    Raises InputError where a coordinator is set without certificates and is not on this machine.
    """

    def __init__(self, home: Home, options: BuildOptions, say: Callable[[str], None]) -> None:
        self._options, self._say = options, say
        self._settings = config().farm
        self._security = security_of(self._settings)
        # workers of other clusters tell dask of no cores: there, what is decided here has to do
        self._counts_cores = bool(self._settings.scheduler) or self._settings.cluster is None
        self._topic = f"rocwright-{uuid.uuid4().hex}"
        self._soon: deque[Event] = deque()
        """Told by the one who takes, who cannot wait for that."""
        self._told: Mailbox[Event] = Mailbox(MOST_EVENTS)
        self._open_tasks: dict[str, Task] = {}
        """Known before dask is told of them: what it tells may come at once."""
        self._futures: dict[str, Future[str]] = {}
        self._ready: defaultdict[tuple[tuple[str, ...], int], list[Task]] = defaultdict(list)
        """What dask is not told of yet, by the machines that are fit and the cores that it takes."""
        self._waiting = Waiting()
        """What compiles, until a machine has room: dask would choose one at once, and for good."""
        self._has: dict[str, Placed] = {}
        """What compiles on a machine, or will soon."""
        self._fit: dict[str, tuple[str, ...]] = {}
        """The machines that are fit for what dask has, by their addresses."""
        self._places: dict[str, Place] = {}
        self._cancelled: set[str] = set()
        self._alone: set[str] = set()
        """What waited for machines that were all gone, when it was last looked at."""
        self._given_up: set[str] = set()
        """The keys of what was submitted anew, under another."""
        self._there: set[str] = set()
        self._looked, self._rescued = -LOOK, -LOOK
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            address, security, wait = self._settings.scheduler, self._security, FIRST
            if not address and self._settings.cluster is not None:
                certified = security if self._settings.certificates else None
                address = stack.enter_context(cluster_of(self._settings.cluster, certified)).scheduler_address
                wait = self._settings.cluster.wait
            elif not address:
                address = stack.enter_context(local_cluster(security)).scheduler_address
            self._client = connect(address, security, FIRST)
            stack.callback(self._client.close, timeout=5)
            self._client.subscribe_topic(self._topic, self._hear)
            with contextlib.suppress(TimeoutError):
                self._client.wait_for_workers(1, timeout=wait)
            self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._told.close()
        for task in [*self._open_tasks.values()]:
            with contextlib.suppress(Exception):
                self.cancel(task)
        self._open.__exit__(kind, error, trace)

    # places

    def _look(self) -> dict[str, Place]:
        """What each worker offers, by its address; as it was known where the coordinator is gone."""
        if self._is_there and time.monotonic() - self._looked >= LOOK:
            try:
                replies: dict[str, str] = self._client.run(remote.place, on_error="ignore")
            except Exception:
                # it went meanwhile: its tasks are told as gone
                return self._places
            places = {address: Place.model_validate_json(reply) for address, reply in replies.items()}
            self._places = {address: place for address, place in places.items() if place.takes}
            self._looked = time.monotonic()
        return self._places

    def offers(self) -> Sequence[ExecutorOffer]:
        with self._told.overflowing():
            return [place.offer() for place in self._look().values()]

    def submit(self, task: Task) -> None:
        self._soon.append(Queued(task))
        with self._told.overflowing():
            self._soon.extend(self._submitted(task))

    def _submitted(self, task: Task) -> Iterator[Event]:
        """Have it handed over soon; its end where no machine is fit for it, or the coordinator is gone."""
        self._open_tasks[task.id] = task
        places = self._look()
        if not self._is_there:
            yield self._coordinator_gone(task)
            return
        fit = fit_for(task, places)
        if not fit:
            yield Ended(task=task, error=nobody_has(task.step, [*places.values()]))
            return
        if compiles(task.step):
            self._waiting.add(task, places)
        else:
            self._ready[tuple(fit), 0].append(task)

    def _rescue(self) -> None:
        """Submit anew what waits for machines that are all gone, once there are others: dask would wait for
        these machines for ever, also for one that went before its result was fetched. What waits here is
        given to machines that came, too."""
        if time.monotonic() - self._rescued < LOOK:
            return
        self._rescued = time.monotonic()
        if not self._is_there:
            self._give_all_up()
            return
        try:
            present = set(self._client.scheduler_info()["workers"])
        except Exception:
            # its tasks are told as gone
            return
        if self._waiting and present - self._there:
            self._looked = -LOOK
            self._waiting.renew(self._look())
        self._there = present
        fit = {
            task_id: fit
            for task_id, fit in [*self._fit.items()]
            if self._futures[task_id].status in UNFINISHED
        }
        alone = {task_id for task_id, its in fit.items() if not present.intersection(its)}
        alone |= {task_id for task_id, its in self._waiting.fit().items() if not self._places.keys() & {*its}}
        alone = alone if present else set()
        # what is lost is told as lost; that may arrive later than who is there
        stranded, self._alone = alone & self._alone, alone
        for task_id in stranded:
            task, future = self._open_tasks[task_id], self._futures.pop(task_id, None)
            self._waiting.remove(task)
            self._fit.pop(task_id, None)
            self._has.pop(task_id, None)
            if future is not None:
                self._given_up.add(str(future.key))
                future.cancel()
            self._looked = -LOOK
            self._soon.extend(self._submitted(task))

    @property
    def _is_there(self) -> bool:
        """Whether the coordinator is: a client that lost it has forgotten what it had handed over, and each
        question takes as long as it tries to find it again."""
        return bool(self._client.status == "running")

    def _give_all_up(self) -> None:
        """Tell of all that is open that the coordinator is gone: dask tells so only of what it knew."""
        self._given_up |= {str(future.key) for future in self._futures.values()}
        self._waiting, self._ready = Waiting(), defaultdict(list)
        self._soon.extend(self._coordinator_gone(task) for task in self._open_tasks.values())

    def _place(self) -> None:
        """Give what compiles the machines that have room."""
        if not self._waiting:
            return
        busy = defaultdict[str, int](int)
        for placed in self._has.values():
            busy[placed.where] += placed.cores
        foreign = others_have(self._places, {task.step.key for task in self._open_tasks.values()})
        for placed in self._waiting.place(self._places, busy, foreign):
            self._has[placed.task.id] = placed
            self._ready[(placed.where,), placed.cores].append(placed.task)

    def _hand_over(self) -> None:
        """Tell dask of what has a place: all at once what goes to the same machines, which is quicker."""
        self._place()
        ready, self._ready = self._ready, defaultdict(list)
        for (fit, cores), tasks in ready.items():
            tasks.sort(key=lambda task: task.priority)
            futures = self._client.map(
                remote.run,
                [self._handed(task) for task in tasks],
                topic=self._topic,
                # dask takes those of one priority in the order of their keys
                key=[f"{number:06d}-{task.id[:12]}-{uuid.uuid4().hex}" for number, task in enumerate(tasks)],
                workers=[*fit],
                resources={remote.CORES: cores} if cores and self._counts_cores else None,
                priority=-tasks[0].priority,
                retries=0,
                pure=False,
            )
            for task, future in zip(tasks, futures, strict=True):
                self._futures[task.id], self._fit[task.id] = future, fit
                future.add_done_callback(partial(self._done, task))

    def _handed(self, task: Task) -> str:
        lowered = task.jobs if task.jobs < self._options.jobs else 0
        return Handed.of(task, lowered).model_dump_json()

    def cancel(self, task: Task) -> None:
        waited = self._waiting.remove(task)
        for ready in self._ready.values():
            if task in ready:
                ready.remove(task)
                waited = True
        if waited:
            self._has.pop(task.id, None)
            self._soon.append(Ended(task=task))
            return
        future = self._futures.get(task.id)
        if future is None or not self._is_there:
            return
        self._cancelled.add(task.id)
        with self._told.overflowing():
            replies = self._client.run(remote.cancel, task.id, on_error="ignore")
            if True not in replies.values():
                future.cancel()

    # what is told, by threads of dask

    def _hear(self, event: tuple[float, Any]) -> None:
        report = TaskEvent.model_validate_json(event[1])
        task = self._open_tasks.get(report.id)
        if task is None:
            return
        match report.kind:
            case "started":
                self._told.put(Started(task, report.jobs, report.memory))
            case "lines":
                for line in report.lines:
                    self._told.put(Line(task, line))
            case "sampled":
                self._told.put(Sampled(task, report.memory or 0, report.processes, report.jobs))

    def _done(self, task: Task, future: Future[str]) -> None:
        """One that was given up has another future, also where that happened while its result was fetched."""
        ended = None if self._is_given_up(future) else self._ended(task, future)
        if ended is not None and not self._is_given_up(future):
            self._told.put(ended)

    def _is_given_up(self, future: Future[str]) -> bool:
        return str(future.key) in self._given_up

    def _ended(self, task: Task, future: Future[str]) -> Event:
        try:
            return Reply.model_validate_json(future.result()).ended(task)
        except KilledWorker as error:
            return Lost(
                task, str(error.last_worker.name), "its process ended, or it does not answer any more"
            )
        except CancelledError:
            return Ended(task=task) if self._client.status == "running" else self._coordinator_gone(task)
        except Exception as error:
            return Lost(task, "a worker", f"{type(error).__name__}: {error}")

    def _coordinator_gone(self, task: Task) -> Event:
        return Ended(
            task=task,
            error=NetworkError(
                "the coordinator of the farm is gone",
                cause="it was stopped, or cannot be reached",
                next_step="start it again (rocwright farm up), then run the same command: what workers "
                "finished meanwhile is in the store",
            ),
        )

    def events(self) -> Iterator[Event]:
        # dask answers in the thread that hears of events: it must not wait for room in the mailbox
        with self._told.overflowing():
            self._rescue()
            self._hand_over()
        if not self._soon:
            self._soon.extend(self._told.take(WAIT))
        # one by one: what Ctrl-C leaves here is given the next time
        while self._soon:
            event = self._soon.popleft()
            if isinstance(event, Ended | Lost):
                if self._open_tasks.pop(event.task.id, None) is None:
                    # told twice: by dask, and as given up
                    continue
                self._futures.pop(event.task.id, None)
                self._fit.pop(event.task.id, None)
                self._has.pop(event.task.id, None)
                if isinstance(event, Ended) and self._was_turned_away(event):
                    # its worker offers nothing any more
                    self._looked = -LOOK
                    self.submit(event.task)
                    continue
            yield event

    def _was_turned_away(self, event: Ended) -> bool:
        """Whether its worker takes nothing now, and nobody asked for its end."""
        return event.record is None and event.error is None and event.task.id not in self._cancelled
