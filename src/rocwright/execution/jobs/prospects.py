"""What each job under way may come to, and one that is still to be let in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rocwright.execution.jobs.learn import MOST_AMONG, Learnt, Peaks
from rocwright.execution.jobs.processes import ProcessKind, StepProcess

UNKNOWN = 1024**3
"""Bytes that a job is reckoned with where neither its recipe nor an earlier one tells."""

SHOWN = 0.25
"""Seconds of a processor after which a job has shown its size."""

_FIRST, _FEWEST, _MOST_FIRST = 640 * 1024**2, 4, 6
"""Bytes that a new job is let in with at most where none has ended and those that run have shown less (what
they come to is seen only at their end), and into how many parts all memory is divided for it: by cores."""

_NAMED = 1.025
"""What a job may come to over its own peak in the last build."""

_STILL = 0.2
"""The share that counts at least of what a job may still want, however long it has not grown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNow:
    """A step under way. `memory` is what its recipe reckons one job with, in bytes (0: it does not say).

    `shares` tells that its tools are clients of the job server. A step that does not share has `jobs`
    processes of its own, whatever is decided here, save that they can be paused. With `clients` some of its
    tools take tokens, and more than the number comes by tokens only. `begun` is on the monotonic clock.
    """

    name: str
    component: str
    memory: int
    jobs: int
    shares: bool
    begun: float
    clients: bool = False


@dataclass(frozen=True, slots=True)
class Newcomer:
    """Bytes that one still to be let in holds on average while it runs, and that it may come to.

    `count` is how many of its sort have ended.
    """

    usual: int
    most: int
    count: float

    @property
    def cold(self) -> bool:
        """Whether none is known."""
        return self.count < 1


class Prospects:
    """For one look: `workers` are the jobs of `steps` that run now, `total` is the memory for all, bytes.

    At least as many run at once as there are `cores`.
    """

    def __init__(
        self,
        steps: Sequence[StepNow],
        learnt: Learnt,
        workers: Sequence[StepProcess],
        total: int,
        cores: int = MOST_AMONG,
    ) -> None:
        self._among = max(2, cores, len(workers))
        self._steps = {step.name: step for step in steps}
        self._learnt = learnt
        self._total = total
        self._shown: dict[tuple[str, ProcessKind], list[int]] = defaultdict(list)
        self._largest: dict[tuple[str, ProcessKind], int] = defaultdict(int)
        for worker in workers:
            sort = worker.step, worker.kind
            self._largest[sort] = max(self._largest[sort], worker.memory)
            if worker.cpu >= SHOWN:
                self._shown[sort].append(worker.memory)

    def most(self, process: StepProcess) -> int:
        """What a job may come to: by its own peak in the last build, else by those of its sort."""
        if self.knows(process):
            return round(self._named(process) * _NAMED)
        peaks = self._peaks(process.step, process.kind)
        if peaks.count < 1:
            return max(self._guess(process.step), 2 * process.memory)
        return peaks.most(process.memory, self._largest[process.step, process.kind], self._among)

    def knows(self, process: StepProcess) -> bool:
        """Whether a job's own peak in the last build is known, and not exceeded by now."""
        return self._named(process) * _NAMED >= max(process.memory, 1)

    def guessed(self, process: StepProcess) -> bool:
        """Whether what a job may come to is a guess: neither it nor another of its sort has ended before."""
        return not self.knows(process) and self._peaks(process.step, process.kind).count < 1

    def wants(self, process: StepProcess, grown: float) -> int:
        """What it may still want; it last grew when it had had `grown` seconds of a processor.

        The longer that is ago, the more likely it has all that it wants: of 146 compilers of llama.cpp, torch
        and torchvision, none that stood still for four tenths of its time grew by a tenth after it.
        """
        still = (process.cpu - grown) / process.cpu if process.cpu > 1 else 0.0
        return round((self.most(process) - process.memory) * min(1.0, max(_STILL, 1.3 - 2 * still)))

    def usual(self, process: StepProcess) -> int:
        """What a job holds on average from now on."""
        mean = self.new(process.step, process.kind).usual
        named = self._named(process)
        return max(process.memory, min(mean, named) if named else mean)

    def new(self, name: str, kind: ProcessKind = ProcessKind.COMPILE) -> Newcomer:
        """One of a sort that is still to be let in.

        As long as none has ended, by what those that run have shown: twice that.
        """
        peaks, shown = self._peaks(name, kind), self._shown[name, kind]
        if peaks.count < 1:
            twice = 2 * max(shown, default=0)
            first = min(_FIRST, self._total // min(max(_FEWEST, self._among), _MOST_FIRST))
            return Newcomer(max(first, twice), max(self._guess(name), twice), count=0)
        mean = self._learnt.mean(self._component(name), name, kind) or peaks.usual()
        if shown:
            current = sum(shown) / len(shown)
            mean = max(mean, (mean * peaks.count + current * len(shown)) / (peaks.count + len(shown)))
        # the first that end are the small ones
        return Newcomer(
            round(mean * (1 + 1 / (1 + peaks.count))),
            peaks.most(among=self._among),
            count=peaks.count,
        )

    def _guess(self, name: str) -> int:
        """Never more than half of all: else one that is too high would keep all others out."""
        step = self._steps.get(name)
        return min(max(step.memory if step else 0, 2 * UNKNOWN), self._total // 2)

    def _named(self, process: StepProcess) -> int:
        return (
            self._learnt.unit(self._component(process.step), process.step, process.kind, process.unit)
            if process.unit
            else 0
        )

    def _peaks(self, name: str, kind: ProcessKind) -> Peaks:
        return self._learnt.peaks(self._component(name), name, kind, UNKNOWN)

    def _component(self, name: str) -> str:
        step = self._steps.get(name)
        return step.component if step else ""
