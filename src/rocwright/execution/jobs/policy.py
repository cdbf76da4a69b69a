"""How many processes there may be now, and which must wait: a pure function of what is seen.

New jobs are let in by what those that run usually come to. What runs is held to an order in which all of it
can end, by what each may come to at most: the younger ones stop before they take what the older may want.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from rocwright.execution.jobs.beside import MOST_RUNNING, NOBODY, NOTHING, Beside, Claim, RunningCompiler
from rocwright.execution.jobs.learn import Learnt
from rocwright.execution.jobs.order import ProcessMemory, may_run, order
from rocwright.execution.jobs.processes import ProcessKind, StepProcess
from rocwright.execution.jobs.prospects import SHOWN, UNKNOWN, Prospects, StepNow
from rocwright.execution.jobs.room import MemoryBudget, Pressure

PERIOD = 0.5
"""Seconds between two looks where nothing presses."""

SHORTEST = 0.02
"""Seconds between two looks where the room is nearly gone."""

PATIENCE = 5.0
"""Seconds asleep without any work done after which a process is held to wait for another. One that wants a
processor and gets none, on a machine that others use too, may grow at any time."""

STALLED = (0.1, 0.4)
"""Shares of time in which all wait for memory: from the first on the room counts less, at the second not."""

_NEARLY = 0.1
"""The share of all that a process may lack, and be held to have had all."""

_FAST, _SLOW = 512 * 1024**2, 128 * 1024**2
"""Bytes a second by which a process may grow: as long as none was seen, and at least, whatever was seen."""

MANY = 32
"""Jobs of a sort that have ended, from which on there may be more than there are processors."""

_GROWN = 1.02
"""A process has grown that holds so many times what it held when it last grew."""

_SIGNAL = 0.03
"""Seconds from a look to what it stops having stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What one look hands to the next.

    `fastest` is the quickest growth of a process in bytes a second, `swells` that of one that had shown its
    size (all grow quickly as they begin), `late` by how many seconds looks came
    later than the `waits` asked for. `stalled` is the pressure's total, `calm` the share of the room that
    counts under it. `progress` is when each process last did something; `stopped` are those paused here.
    `growth` is that of each in bytes a second, `grew` what it held when it last grew, and the seconds of a
    processor that it had had by then. `ended` is how many jobs have ended. `others` is the least, in bytes by
    bound, that was ever used by what is no compiler.
    """

    time: float | None = None
    fastest: float = _FAST
    swells: float = _FAST
    late: float = 0
    waits: float = PERIOD
    stalled: float = 0
    calm: float = 1
    seen: Mapping[tuple[int, int], StepProcess] = field(default_factory=dict)
    progress: Mapping[tuple[int, int], float] = field(default_factory=dict)
    stopped: frozenset[tuple[int, int]] = frozenset()
    growth: Mapping[tuple[int, int], float] = field(default_factory=dict)
    grew: Mapping[tuple[int, int], tuple[int, float]] = field(default_factory=dict)
    ended: int = 0
    others: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to be done until the next look.

    `tokens` is how many processes there may be in all, of all steps: each step's first one counted, and the
    `jobs` of steps that do not share. `pause` and `resume` are what to stop and to let go on. `why` is for
    people ("memory: 12 of 16 jobs"), "" where nothing holds the build back. `next` is when to look again,
    in seconds. `hopeless` is a process that wants more by itself than there is for all. `claim` is what the
    build has of the machine, for others.
    """

    tokens: int
    pause: tuple[StepProcess, ...] = ()
    resume: tuple[StepProcess, ...] = ()
    why: str = ""
    next: float = PERIOD
    hopeless: StepProcess | None = None
    claim: Claim = NOTHING
    past: Past = Past()


def decide(
    clock: float,
    room: MemoryBudget,
    processes: Sequence[StepProcess],
    steps: Sequence[StepNow],
    learnt: Learnt,
    previous: Decision | None,
    limit: int,
    cores: int | None = None,
    neighbours: Beside = NOBODY,
) -> Decision:
    """What to do now, never more than `limit` processes in all, on `cores` (None: as many as `limit`).

    `neighbours` are the other builds.
    `previous` is the last decision, None at first; `clock` is monotonic.
    """
    past = _remember(clock, room, processes, previous, neighbours)
    limit = neighbours.most(limit, max(cores or limit, limit))
    workers = sorted(
        (process for process in processes if process.kind is not ProcessKind.OTHER),
        key=lambda process: (process.started, process.pid),
    )
    ours = [worker for worker in workers if not worker.paused or _name(worker) in past.stopped]
    active = [process for process in ours if clock - past.progress[_name(process)] < PATIENCE]
    prospects = Prospects(steps, learnt, workers, room.total, min(cores or limit, limit))
    reserve = margin(room, 1 + neighbours.builds * room.shared)
    available = round((room.available - reserve) * past.calm)
    competing = neighbours.running if room.shared else ()
    goes = _going(available, reserve, active, competing, prospects, past, min(cores or limit, limit))
    stays = {_name(process) for process, may in zip(active, goes, strict=True) if not may}
    pause = tuple(process for process in active if _name(process) in stays and not process.paused)
    # also those that have not stopped yet (a signal waits until its process has a processor), or turned out
    # to drive others meanwhile
    resume = tuple(process for process in processes if _name(process) in past.stopped - stays)
    promised = neighbours.promised if room.shared else 0
    tokens = (
        0
        if stays
        else _admitted(available - promised, workers, steps, prospects, past, limit, cores or limit)
    )
    tokens = min(limit, max(tokens, len(steps), 1))
    wait = _next(available, past.fastest, min(tokens + len(competing), cores or limit))
    return Decision(
        tokens=tokens,
        pause=pause,
        resume=resume,
        why=_words(tokens, limit, len(stays)),
        next=wait,
        claim=_claim(workers, active, stays, steps, prospects, past, tokens),
        hopeless=_hopeless(room, reserve, active, goes, past.others[room.bound]),
        past=replace(past, stopped=frozenset(stays), waits=wait),
    )


def fitting(room: MemoryBudget, learnt: Learnt, component: str, step: str, memory: int, limit: int) -> int:
    """How many jobs of a step usually fit into the room at once, at least one: for tools that take a number.

    Where more is wanted at times, some of them are paused.
    """
    usual = per_job(learnt, component, step, memory)
    return max(1, min(limit, (room.available - margin(room)) // max(1, usual)))


def per_job(learnt: Learnt, component: str, step: str, memory: int) -> int:
    """Bytes that a compilation of a step usually comes to: as was learnt here, of which what its recipe says
    (`memory`, 0 where it does not) is a part, and the whole where nothing was."""
    return learnt.peaks(component, step, ProcessKind.COMPILE, memory or UNKNOWN).usual()


def margin(room: MemoryBudget, builds: int = 1) -> int:
    """Bytes that are kept for what is not seen: kernel memory, drivers of compilers, other programs; of each
    of so many builds, and what those are about to do."""
    return round(min(max(room.total * 0.03, builds * 32 * 1024**2), 1024**3))


def _name(process: StepProcess) -> tuple[int, int]:
    return process.pid, process.started


def _remember(
    clock: float,
    room: MemoryBudget,
    processes: Sequence[StepProcess],
    previous: Decision | None,
    neighbours: Beside,
) -> Past:
    past = previous.past if previous is not None else Past()
    passed = max(clock - past.time, 1e-3) if past.time is not None else past.waits
    pairs = [(process, past.seen.get(_name(process))) for process in processes]
    growth = {
        _name(process): (process.memory - old.memory) / passed
        for process, old in pairs
        if old is not None and passed > _SIGNAL / 3
    }
    shown = [
        growth[_name(process)]
        for process, old in pairs
        if _name(process) in growth and old and old.cpu >= SHOWN
    ]
    progress = {
        _name(process): past.progress.get(_name(process), clock)
        if old is not None and old.cpu == process.cpu and not process.paused and not process.ready
        else clock
        for process, old in pairs
    }
    stall = room.pressure
    foreign = max(
        0,
        room.used
        - (neighbours.memory if room.shared else 0)
        - sum(process.memory for process in processes if process.kind is not ProcessKind.OTHER),
    )
    return Past(
        time=clock,
        fastest=max(_SLOW, past.fastest * 0.5 ** (passed / 20), *growth.values()),
        swells=max(_SLOW, past.swells * 0.5 ** (passed / 20), *shown),
        late=max(0.0, min(1.0, max(past.late * 0.5 ** (passed / 10), passed - past.waits))),
        seen={_name(process): process for process in processes},
        progress=progress,
        stopped=past.stopped & progress.keys(),
        growth=growth or past.growth,
        grew={_name(process): _last_growth(process, past.grew.get(_name(process))) for process in processes},
        ended=past.ended
        + sum(name not in progress for name, old in past.seen.items() if old.kind is not ProcessKind.OTHER),
        others={**past.others, room.bound: min(foreign, past.others.get(room.bound, foreign))},
        stalled=stall.total if stall is not None else 0,
        calm=_calm(stall, past, passed),
    )


def _last_growth(process: StepProcess, previous: tuple[int, float] | None) -> tuple[int, float]:
    return (
        (process.memory, process.cpu)
        if previous is None or process.memory > previous[0] * _GROWN
        else previous
    )


def _calm(pressure: Pressure | None, past: Past, passed: float) -> float:
    """The share of the room that counts: 1 without pressure, 0 where hardly anything is done for it."""
    if pressure is None:
        return 1.0
    lately = (pressure.total - past.stalled) / passed if past.stalled else 0.0
    lower, upper = STALLED
    return min(1.0, max(0.0, (upper - max(pressure.full, lately)) / (upper - lower)))


def _going(
    available: int,
    reserve: int,
    active: Sequence[StepProcess],
    competing: Sequence[RunningCompiler],
    prospects: Prospects,
    past: Past,
    cores: int,
) -> list[bool]:
    """Which of the processes, the oldest first, may go on, where those of other builds take their turns in
    the same order."""
    mine = [
        _running_compiler(process, prospects, past, stopped=_name(process) in past.stopped)
        for process in active
    ]
    jobs = sorted([*mine, *competing], key=lambda job: job.started)
    if not mine or sum(job.wants for job in jobs) <= available:
        return [True] * len(mine)
    ahead = (2 * SHORTEST + _SIGNAL + past.late) * min(1.0, cores / len(jobs))
    # each goes on growing as it does, and one may begin to swell: not all in the same moment
    young = any(process.cpu < SHOWN and not process.paused for process in active)
    burst = round((past.fastest if young else past.swells) * ahead)
    again = burst + reserve // 2
    # one whose own peak is known grows no further: it needs no room beyond that to go on again
    peaks = {
        id(job): job.wants for job, process in zip(mine, active, strict=True) if prospects.knows(process)
    }
    steps = [
        min(burst, round(ahead * max(2 * job.grows, _SLOW))) + (again if job.stopped else 0) for job in jobs
    ]
    steps = [min(step, peaks.get(id(job), step)) for step, job in zip(steps, jobs, strict=True)]
    holdings = [
        ProcessMemory(job.holds, job.wants, reserve if job.stopped else 0, job.guessed) for job in jobs
    ]
    places = order(available - burst, holdings)
    allowed = dict(zip((place.job for place in places), may_run(places, steps), strict=True))
    numbers = {id(job): number for number, job in enumerate(jobs)}
    return [allowed[numbers[id(job)]] for job in mine]


def _admitted(
    available: int,
    workers: Sequence[StepProcess],
    steps: Sequence[StepNow],
    prospects: Prospects,
    past: Past,
    limit: int,
    cores: int,
) -> int:
    """Processes that there may be in all.

    As long as processors are idle, by what jobs hold on average, so that some of them may have to wait at
    times. Beyond, where more of them gain little, by what all may come to at most. Of a sort of which none
    has ended, twice as many as have shown their size.
    """
    running = Counter(worker.step for worker in workers)
    later = [
        prospects.new(step.name)
        for step in steps
        for _ in range(0 if step.shares or step.clients else step.jobs - running[step.name])
    ]
    by_usual = available - sum(prospects.usual(worker) - worker.memory for worker in workers)
    by_most = available - sum(prospects.most(worker) - worker.memory for worker in workers)
    by_usual -= sum(newcomer.most // 2 if newcomer.cold else newcomer.usual for newcomer in later)
    by_most -= sum(newcomer.most for newcomer in later)
    if workers:
        # the oldest is to find what it may want: most of that, since it mostly wants less
        oldest = workers[0]
        wants = prospects.wants(oldest, past.grew[_name(oldest)][1])
        by_usual -= max(0, oldest.memory + wants - prospects.usual(oldest)) * 3 // 4
    total = len(workers) + len(later)
    new = [prospects.new(step.name) for step in steps if step.shares or step.clients]
    usual = max((newcomer.usual for newcomer in new), default=UNKNOWN)
    at_most = max((newcomer.most for newcomer in new), default=UNKNOWN)
    ramp = 2 * (past.ended + sum(worker.cpu >= SHOWN for worker in workers))
    few = min(cores, max(1, ramp)) if any(newcomer.cold for newcomer in new) else cores
    # what jobs may come to at most is well known only from many
    many = limit if all(newcomer.cold or newcomer.count >= MANY for newcomer in new) else cores
    while total < limit and ((total < many and by_most >= at_most) or (total < few and by_usual >= usual)):
        total += 1
        by_usual -= usual
        by_most -= at_most
    return total


def _claim(
    workers: Sequence[StepProcess],
    active: Sequence[StepProcess],
    stays: Set[tuple[int, int]],
    steps: Sequence[StepNow],
    prospects: Prospects,
    past: Past,
    tokens: int,
) -> Claim:
    """What runs, what it may still come to, and what may begin until the next look: no more than runs."""
    running = [worker for worker in workers if not worker.paused]
    soon = min(max(0, tokens - len(workers)), len(running))
    usual = max((prospects.new(step.name).usual for step in steps), default=0)
    grows = sum(max(0, prospects.usual(worker) - worker.memory) for worker in workers)
    return Claim(
        jobs=max(len(running), min(1, len(steps))),
        memory=sum(worker.memory for worker in workers),
        running=tuple(
            _running_compiler(process, prospects, past, stopped=_name(process) in stays)
            for process in active[:MOST_RUNNING]
        ),
        promised=grows + soon * usual,
    )


def _running_compiler(
    process: StepProcess, prospects: Prospects, past: Past, *, stopped: bool
) -> RunningCompiler:
    """A process as the order of all builds has it."""
    return RunningCompiler(
        started=process.started,
        holds=process.memory,
        wants=max(0, prospects.wants(process, past.grew[_name(process)][1])),
        grows=max(0, round(past.growth.get(_name(process), 0.0))),
        stopped=stopped,
        guessed=prospects.guessed(process),
    )


def _next(available: int, fastest: float, running: int) -> float:
    """A quarter of the time in which all that is left could be gone."""
    return min(PERIOD, max(SHORTEST, available / (4 * fastest * max(1, running))))


def _hopeless(
    room: MemoryBudget, reserve: int, active: Sequence[StepProcess], goes: Sequence[bool], foreign: int
) -> StepProcess | None:
    """The process that alone has filled what there would be without all others.

    What is used now would not tell: a process that was killed is gone before its memory is.
    """
    going = [process for process, may in zip(active, goes, strict=True) if may]
    if len(going) != 1 or room.available > reserve:
        return None
    nearly_all = room.total - min(reserve, round(room.total * _NEARLY))
    return going[0] if going[0].memory + foreign > nearly_all else None


def _words(tokens: int, limit: int, waiting: int) -> str:
    if waiting:
        return f"memory: {tokens} of {limit} jobs, {waiting} paused"
    return f"memory: {tokens} of {limit} jobs" if tokens < limit else ""
