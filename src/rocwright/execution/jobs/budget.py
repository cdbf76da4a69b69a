"""What the jobs that run may come to, and how many more there may be."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from rocwright.execution.jobs.beside import MOST_RUNNING, Claim, RunningCompiler
from rocwright.execution.jobs.learn import UNKNOWN, Learnt, Peaks
from rocwright.execution.jobs.processes import ProcessKind, ProcessName, StepProcess

# Seconds between two looks if memory is plentiful.
PERIOD = 0.5

# Seconds of a processor after which a job has shown its size.
SHOWN = 0.25

_MIB = 1024**2

# Bytes a second by which a process may grow: as long as none was seen to, and at least.
FAST, SLOW = 512 * _MIB, 128 * _MIB

# Bytes expected of a new job at most if none of its sort has ended, and those that run hold less.
_FIRST = 640 * _MIB

# What a job may come to, over its own peak in the last build.
_NAMED = 1.025

# Jobs of a sort that must have ended before the largest of them is the worst case of more jobs than there
# are processors. With fewer, each counts as unknown: else a recorded build in 4 GiB lost one of 64.
MANY = 32

# The share that counts at least of what a job may still want, however long it has not grown.
_STILL = 0.2


@dataclass(slots=True, kw_only=True)
class StepJobs:
    """A step under way. `reckoned` is what its recipe expects of one job, in bytes (0: it does not say).

    `shares` says that all its tools take tokens. Otherwise it has `jobs` processes of its own, which can only
    be paused. With `clients`, some of its tools take tokens.
    """

    name: str
    component: str
    reckoned: int
    jobs: int
    shares: bool = False
    clients: bool = False

    @property
    def own(self) -> int:
        """The processes that it starts without tokens."""
        return 0 if self.shares or self.clients else self.jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What one look hands to the next.

    `fastest` is the quickest growth of a process in bytes a second, `growth` that of each, and `grew` what it
    held when it last grew, with the processor seconds that it had had by then. `late` is by how many seconds
    looks came later than the `waits` that they were due in. `progress` is when each process last did
    something, `stopped` are those paused here, and `ended` is how many jobs have ended. `foreign` is the
    least that other programs ever used, in bytes by bound. `stalled` is the total of the pressure.
    """

    time: float | None = None
    fastest: float = FAST
    growth: Mapping[ProcessName, float] = field(default_factory=dict)
    grew: Mapping[ProcessName, tuple[int, float]] = field(default_factory=dict)
    late: float = 0
    waits: float = PERIOD
    progress: Mapping[ProcessName, float] = field(default_factory=dict)
    stopped: frozenset[ProcessName] = frozenset()
    processes: Mapping[ProcessName, StepProcess] = field(default_factory=dict)
    ended: int = 0
    foreign: Mapping[str, int] = field(default_factory=dict)
    stalled: float = 0


@dataclass(frozen=True, slots=True)
class Job:
    """A compiler or linker that runs, with the bytes that it usually comes to, and that it may still want.

    `guessed` says that no job of its sort has ended, and `may_stop` that it runs or was paused here: a pause
    by somebody else is not touched.
    """

    process: StepProcess
    usual: int
    wants: int
    may_stop: bool
    stopped: bool
    grows: int
    guessed: bool

    def claim(self, *, stopped: bool) -> RunningCompiler:
        """Describe it to other builds."""
        return RunningCompiler(
            started=self.process.started,
            holds=self.process.memory,
            wants=self.wants,
            grows=self.grows,
            stopped=stopped,
            guessed=self.guessed,
        )


class Budget:
    """What the jobs that run now may come to, the oldest first, and how many more there may be."""

    def __init__(
        self,
        steps: Sequence[StepJobs],
        learnt: Learnt,
        processes: Sequence[StepProcess],
        past: Past,
        total: int,
        cores: int,
    ) -> None:
        self._steps, self._learnt, self._past = {step.name: step for step in steps}, learnt, past
        self._total, self._cores = total, cores
        self._peaks: dict[tuple[str, ProcessKind], Peaks] = {}
        self._held: dict[tuple[str, ProcessKind], list[int]] = defaultdict(list)
        self._shown: dict[tuple[str, ProcessKind], list[int]] = defaultdict(list)
        workers = [process for process in processes if process.kind is not ProcessKind.OTHER]
        for worker in workers:
            self._held[worker.step, worker.kind].append(worker.memory)
            if worker.cpu >= SHOWN:
                self._shown[worker.step, worker.kind].append(worker.memory)
        self._among = max(2, cores, len(workers))
        workers.sort(key=lambda worker: (worker.started, worker.pid))
        self.jobs = [self._job(worker) for worker in workers]

    def admits(self, available: int, limit: int, cores: int) -> int:
        """Return how many processes there may be in all.

        As many as there are `cores` by what jobs usually hold, and of a sort of which none has ended, twice
        as many as have shown their size or ended. More, if the worst case of all fits.
        """
        running = Counter(job.process.step for job in self.jobs)
        later = {step.name: max(0, step.own - running[step.name]) for step in self._steps.values()}
        count = len(self.jobs) + sum(later.values())
        usual, ceiling, ended = self._next()
        worst = sum(job.wants for job in self.jobs) + sum(self._ceiling(name) * later[name] for name in later)
        fitting = max(0, (available - worst) // max(1, ceiling))
        in_use = sum(job.process.memory for job in self.jobs)
        many = limit if ended >= MANY else max(cores, (available + in_use) // max(ceiling, 2 * UNKNOWN))
        available -= sum(job.usual - job.process.memory for job in self.jobs)
        available -= sum(self._usual(name) * later[name] for name in later)
        if self.jobs:
            # the oldest is to find what it may want: most of that, since it mostly wants less
            oldest = self.jobs[0]
            available -= max(0, oldest.process.memory + oldest.wants - oldest.usual) * 3 // 4
        ramp = 2 * (self._past.ended + sum(map(len, self._shown.values())))
        few = min(cores, max(1, ramp)) if ended < 1 else cores
        usually = max(0, min(available // max(1, usual), few - count))
        return max(count, min(limit, many, count + max(usually, fitting)))

    def claim(self, active: Sequence[Job], stays: Set[ProcessName], tokens: int) -> Claim:
        """Describe for others what runs, and what may begin until the next look: no more than runs."""
        running = sum(not job.process.paused for job in self.jobs)
        soon = min(max(0, tokens - len(self.jobs)), running)
        grows = sum(job.usual - job.process.memory for job in self.jobs)
        return Claim(
            jobs=max(running, min(1, len(self._steps))),
            memory=sum(job.process.memory for job in self.jobs),
            running=tuple(job.claim(stopped=job.process.name in stays) for job in active[:MOST_RUNNING]),
            promised=grows + soon * self._next()[0],
        )

    def _job(self, worker: StepProcess) -> Job:
        name = worker.name
        named = round(self._named(worker) * _NAMED)
        own_peak = named >= max(worker.memory, 1)
        ceiling = named if own_peak else self._ceiling(worker.step, worker.kind, worker.memory)
        # the longer ago a job last grew, the more likely it has all that it wants
        still = (worker.cpu - self._past.grew[name][1]) / worker.cpu if worker.cpu > 1 else 0.0
        usual = self._usual(worker.step, worker.kind)
        return Job(
            process=worker,
            usual=max(worker.memory, min(usual, named) if named else usual),
            wants=max(0, round((ceiling - worker.memory) * min(1.0, max(_STILL, 1.3 - 2 * still)))),
            may_stop=not worker.paused or name in self._past.stopped,
            stopped=name in self._past.stopped,
            grows=max(0, round(self._past.growth.get(name, 0.0))),
            guessed=not own_peak and self._peaks_of(worker.step, worker.kind).count < 1,
        )

    def _ceiling(self, name: str, kind: ProcessKind = ProcessKind.COMPILE, memory: int = 0) -> int:
        peaks, sizes = self._peaks_of(name, kind), self._held[name, kind]
        if peaks.count >= 1:
            return peaks.most(max(sizes, default=0), self._among)
        step = self._steps.get(name)
        # never more than half of all: a guess that is too high would keep all others out
        guess = min(max(step.reckoned if step else 0, 2 * UNKNOWN), self._total // 2)
        return max(guess, 2 * memory)

    def _usual(self, name: str, kind: ProcessKind = ProcessKind.COMPILE) -> int:
        peaks, shown = self._peaks_of(name, kind), self._shown[name, kind]
        if peaks.count < 1:
            first = min(_FIRST, self._total // min(max(4, self._cores), 6))
            return max(first, 2 * max(shown, default=0))
        mean = peaks.mean()
        if shown:
            mean = max(mean, (mean * peaks.count + sum(shown)) / (peaks.count + len(shown)))
        # the first that end are the small ones
        return round(mean * (1 + 1 / (1 + peaks.count)))

    def _next(self) -> tuple[int, int, float]:
        """Return what the next job usually holds and may come to, and how many of its sort have ended."""
        names = [step.name for step in self._steps.values() if not step.own] or [*self._steps]
        usual = max((self._usual(name) for name in names), default=UNKNOWN)
        ceiling = max((self._ceiling(name) for name in names), default=UNKNOWN)
        ended = min((self._peaks_of(name, ProcessKind.COMPILE).count for name in names), default=0)
        return usual, ceiling, ended

    def _named(self, worker: StepProcess) -> int:
        step = self._steps.get(worker.step)
        if not worker.unit or step is None:
            return 0
        return self._learnt.unit(step.component, step.name, worker.kind, worker.unit)

    def _peaks_of(self, name: str, kind: ProcessKind) -> Peaks:
        if (name, kind) not in self._peaks:
            step = self._steps.get(name)
            self._peaks[name, kind] = self._learnt.peaks(step.component if step else "", name, kind)
        return self._peaks[name, kind]
