"""Machines that run nothing, on a clock that only jumps: how long the real scheduler would take on a farm.

Which step comes next is said by `rocwright.execution.scheduler`, and which machine gets it by
`rocwright.farm`, as in a build. What compiles has all of a machine's cores that it can use, everything else
one; where that is more than there are, all of that machine goes the slower. Files take no time.
"""

from __future__ import annotations

import platform
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rocwright.execution.estimate import compiles
from rocwright.execution.executor import Ended, Event, Offer, Queued, Started, Task
from rocwright.execution.progress import Running
from rocwright.farm.handed import Place
from rocwright.farm.needs import NETWORK, fit_for
from rocwright.farm.placing import Placed, Waiting
from rocwright.store.model import Record

MUCH = 2**50
"""Bytes of memory and of disk that a machine has: enough for every step."""


class Silent:
    """Progress that nobody sees."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, text: str) -> None:
        pass

    def of(self, whole: Callable[[], str]) -> None:
        pass

    def started(self, running: Running) -> None:
        pass

    def line(self, running: Running, text: str) -> None:
        pass

    def ended(self, running: Running, text: str) -> None:
        pass


@dataclass(slots=True)
class _Running:
    placed: Placed
    began: float
    left: float
    """Seconds of one core."""

    @property
    def demand(self) -> int:
        return max(1, self.placed.cores)


class SimulatedFarm:
    """An executor of so many equal machines. `work` says how many seconds of one core a step takes; `now` is
    the time on their clock, in seconds."""

    def __init__(self, machines: int, cores: int, work: Callable[[Task], float]) -> None:
        one = {"cores": cores, "memory": MUCH, "disk": MUCH, "machine": platform.machine()}
        names = [f"machine-{number:02d}" for number in range(machines)]
        self.places = {
            name: Place.model_validate({"name": name, "features": {NETWORK}, **one}) for name in names
        }
        self.work, self.now = work, 0.0
        self.begun: list[tuple[Placed, float]] = []
        """What was begun, in order, and the seconds of one core that it takes."""
        self._cores = cores
        self._waiting = Waiting()
        self._soon: deque[Event] = deque()
        self._running: defaultdict[str, list[_Running]] = defaultdict(list)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def offers(self) -> Sequence[Offer]:
        return [one.offer() for one in self.places.values()]

    def submit(self, task: Task) -> None:
        self._soon.append(Queued(task))
        if compiles(task.step):
            assert self._waiting.add(task, self.places), task.step.name
        else:
            # dask takes the machine that has the fewest
            fit = fit_for(task, self.places)
            self._start(Placed(task, min(fit, key=lambda where: len(self._running[where])), 0))

    def cancel(self, task: Task) -> None:
        raise NotImplementedError("nobody ends a simulation")

    def events(self) -> Iterator[Event]:
        busy = {where: sum(one.placed.cores for one in all_) for where, all_ in self._running.items()}
        for placed in self._waiting.place(self.places, busy, {}):
            self._start(placed)
        if not self._soon:
            self._jump()
        while self._soon:
            yield self._soon.popleft()

    def longest_way(self) -> float:
        """Seconds of the longest way through what was begun, each step alone on a machine."""
        ways: dict[str, float] = {}
        for placed, work in self.begun:
            step = placed.task.step
            needs = (*(item.key for item in step.inputs), *placed.task.shards)
            before = max((ways[key] for key in needs), default=0)
            ways[step.key] = before + work / max(1, placed.cores)
        return max(ways.values(), default=0)

    def _start(self, placed: Placed) -> None:
        work = self.work(placed.task)
        self.begun.append((placed, work))
        self._running[placed.where].append(_Running(placed, self.now, work))
        self._soon.append(Started(placed.task, max(1, placed.cores)))

    def _jump(self) -> None:
        """To the next moment at which something has ended."""
        paces = {where: self._pace(all_) for where, all_ in self._running.items() if all_}
        if not paces:
            return
        then = min(one.left / (one.demand * paces[where]) for where in paces for one in self._running[where])
        self.now += then
        for where, pace in paces.items():
            for one in [*self._running[where]]:
                one.left -= then * one.demand * pace
                if one.left <= 1e-6:
                    self._running[where].remove(one)
                    self._soon.append(self._ended(one))

    def _pace(self, running: Sequence[_Running]) -> float:
        """At which part of its speed each step of a machine goes."""
        return min(1.0, self._cores / sum(one.demand for one in running))

    def _ended(self, one: _Running) -> Ended:
        step = one.placed.task.step
        record = Record(
            key=step.key,
            content_key=step.key,
            step=step.name,
            kind=step.kind,
            outputs=(),
            started="",
            seconds=self.now - one.began,
        )
        return Ended(task=one.placed.task, seconds=record.seconds, record=record)
