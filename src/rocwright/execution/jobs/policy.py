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
    now: float,
    room: MemoryBudget,
    seen: Sequence[StepProcess],
    steps: Sequence[StepNow],
    learnt: Learnt,
    before: Decision | None,
    most: int,
    cores: int | None = None,
    beside: Beside = NOBODY,
) -> Decision:
    """What to do now, never more than `most` processes in all, on `cores` (None: as many as `most`).

    `beside` are the other builds.
    `before` is the last decision, None at first; `now` is monotonic.
    """
    past = _remember(now, room, seen, before, beside)
    most = beside.most(most, max(cores or most, most))
    workers = sorted(
        (one for one in seen if one.kind is not ProcessKind.OTHER), key=lambda one: (one.started, one.pid)
    )
    ours = [one for one in workers if not one.paused or _name(one) in past.stopped]
    active = [one for one in ours if now - past.progress[_name(one)] < PATIENCE]
    prospects = Prospects(steps, learnt, workers, room.total, min(cores or most, most))
    kept = margin(room, 1 + beside.builds * room.shared)
    available = round((room.available - kept) * past.calm)
    others = beside.running if room.shared else ()
    goes = _going(available, kept, active, others, prospects, past, min(cores or most, most))
    stays = {_name(one) for one, may in zip(active, goes, strict=True) if not may}
    pause = tuple(one for one in active if _name(one) in stays and not one.paused)
    # also those that have not stopped yet (a signal waits until its process has a processor), or turned out
    # to drive others meanwhile
    resume = tuple(one for one in seen if _name(one) in past.stopped - stays)
    promised = beside.promised if room.shared else 0
    tokens = (
        0 if stays else _admitted(available - promised, workers, steps, prospects, past, most, cores or most)
    )
    tokens = min(most, max(tokens, len(steps), 1))
    wait = _next(available, past.fastest, min(tokens + len(others), cores or most))
    return Decision(
        tokens=tokens,
        pause=pause,
        resume=resume,
        why=_words(tokens, most, len(stays)),
        next=wait,
        claim=_claim(workers, active, stays, steps, prospects, past, tokens),
        hopeless=_hopeless(room, kept, active, goes, past.others[room.bound]),
        past=replace(past, stopped=frozenset(stays), waits=wait),
    )


def fitting(room: MemoryBudget, learnt: Learnt, component: str, step: str, memory: int, most: int) -> int:
    """How many jobs of a step usually fit into the room at once, at least one: for tools that take a number.

    Where more is wanted at times, some of them are paused.
    """
    usual = per_job(learnt, component, step, memory)
    return max(1, min(most, (room.available - margin(room)) // max(1, usual)))


def per_job(learnt: Learnt, component: str, step: str, memory: int) -> int:
    """Bytes that a compilation of a step usually comes to: as was learnt here, of which what its recipe says
    (`memory`, 0 where it does not) is a part, and the whole where nothing was."""
    return learnt.peaks(component, step, ProcessKind.COMPILE, memory or UNKNOWN).usual()


def margin(room: MemoryBudget, builds: int = 1) -> int:
    """Bytes that are kept for what is not seen: kernel memory, drivers of compilers, other programs; of each
    of so many builds, and what those are about to do."""
    return round(min(max(room.total * 0.03, builds * 32 * 1024**2), 1024**3))


def _name(one: StepProcess) -> tuple[int, int]:
    return one.pid, one.started


def _remember(
    now: float, room: MemoryBudget, seen: Sequence[StepProcess], before: Decision | None, beside: Beside
) -> Past:
    past = before.past if before is not None else Past()
    passed = max(now - past.time, 1e-3) if past.time is not None else past.waits
    pairs = [(one, past.seen.get(_name(one))) for one in seen]
    growth = {
        _name(one): (one.memory - old.memory) / passed
        for one, old in pairs
        if old is not None and passed > _SIGNAL / 3
    }
    shown = [growth[_name(one)] for one, old in pairs if _name(one) in growth and old and old.cpu >= SHOWN]
    progress = {
        _name(one): past.progress.get(_name(one), now)
        if old is not None and old.cpu == one.cpu and not one.paused and not one.ready
        else now
        for one, old in pairs
    }
    stall = room.pressure
    others = max(
        0,
        room.used
        - (beside.memory if room.shared else 0)
        - sum(one.memory for one in seen if one.kind is not ProcessKind.OTHER),
    )
    return Past(
        time=now,
        fastest=max(_SLOW, past.fastest * 0.5 ** (passed / 20), *growth.values()),
        swells=max(_SLOW, past.swells * 0.5 ** (passed / 20), *shown),
        late=max(0.0, min(1.0, max(past.late * 0.5 ** (passed / 10), passed - past.waits))),
        seen={_name(one): one for one in seen},
        progress=progress,
        stopped=past.stopped & progress.keys(),
        growth=growth or past.growth,
        grew={_name(one): _last_growth(one, past.grew.get(_name(one))) for one in seen},
        ended=past.ended
        + sum(name not in progress for name, old in past.seen.items() if old.kind is not ProcessKind.OTHER),
        others={**past.others, room.bound: min(others, past.others.get(room.bound, others))},
        stalled=stall.total if stall is not None else 0,
        calm=_calm(stall, past, passed),
    )


def _last_growth(one: StepProcess, before: tuple[int, float] | None) -> tuple[int, float]:
    return (one.memory, one.cpu) if before is None or one.memory > before[0] * _GROWN else before


def _calm(pressure: Pressure | None, past: Past, passed: float) -> float:
    """The share of the room that counts: 1 without pressure, 0 where hardly anything is done for it."""
    if pressure is None:
        return 1.0
    lately = (pressure.total - past.stalled) / passed if past.stalled else 0.0
    least, most = STALLED
    return min(1.0, max(0.0, (most - max(pressure.full, lately)) / (most - least)))


def _going(
    available: int,
    kept: int,
    active: Sequence[StepProcess],
    others: Sequence[RunningCompiler],
    prospects: Prospects,
    past: Past,
    cores: int,
) -> list[bool]:
    """Which of the processes, the oldest first, may go on, where those of other builds take their turns in
    the same order."""
    mine = [_told(one, prospects, past, stopped=_name(one) in past.stopped) for one in active]
    jobs = sorted([*mine, *others], key=lambda one: one.started)
    if not mine or sum(one.wants for one in jobs) <= available:
        return [True] * len(mine)
    ahead = (2 * SHORTEST + _SIGNAL + past.late) * min(1.0, cores / len(jobs))
    # each goes on growing as it does, and one may begin to swell: not all in the same moment
    young = any(one.cpu < SHOWN and not one.paused for one in active)
    burst = round((past.fastest if young else past.swells) * ahead)
    again = burst + kept // 2
    # one whose own peak is known grows no further: it needs no room beyond that to go on again
    known = {id(told): told.wants for told, one in zip(mine, active, strict=True) if prospects.knows(one)}
    steps = [
        min(burst, round(ahead * max(2 * one.grows, _SLOW))) + (again if one.stopped else 0) for one in jobs
    ]
    steps = [min(step, known.get(id(one), step)) for step, one in zip(steps, jobs, strict=True)]
    held = [ProcessMemory(one.holds, one.wants, kept if one.stopped else 0, one.guessed) for one in jobs]
    places = order(available - burst, held)
    found = dict(zip((place.job for place in places), may_run(places, steps), strict=True))
    numbers = {id(one): number for number, one in enumerate(jobs)}
    return [found[numbers[id(one)]] for one in mine]


def _admitted(
    available: int,
    workers: Sequence[StepProcess],
    steps: Sequence[StepNow],
    prospects: Prospects,
    past: Past,
    most: int,
    cores: int,
) -> int:
    """Processes that there may be in all.

    As long as processors are idle, by what jobs hold on average, so that some of them may have to wait at
    times. Beyond, where more of them gain little, by what all may come to at most. Of a sort of which none
    has ended, twice as many as have shown their size.
    """
    running = Counter(one.step for one in workers)
    later = [
        prospects.new(step.name)
        for step in steps
        for _ in range(0 if step.shares or step.clients else step.jobs - running[step.name])
    ]
    by_usual = available - sum(prospects.usual(one) - one.memory for one in workers)
    by_most = available - sum(prospects.most(one) - one.memory for one in workers)
    by_usual -= sum(one.most // 2 if one.cold else one.usual for one in later)
    by_most -= sum(one.most for one in later)
    if workers:
        # the oldest is to find what it may want: most of that, since it mostly wants less
        oldest = workers[0]
        wants = prospects.wants(oldest, past.grew[_name(oldest)][1])
        by_usual -= max(0, oldest.memory + wants - prospects.usual(oldest)) * 3 // 4
    total = len(workers) + len(later)
    new = [prospects.new(step.name) for step in steps if step.shares or step.clients]
    usual = max((one.usual for one in new), default=UNKNOWN)
    at_most = max((one.most for one in new), default=UNKNOWN)
    ramp = 2 * (past.ended + sum(one.cpu >= SHOWN for one in workers))
    few = min(cores, max(1, ramp)) if any(one.cold for one in new) else cores
    # what jobs may come to at most is well known only from many
    many = most if all(one.cold or one.count >= MANY for one in new) else cores
    while total < most and ((total < many and by_most >= at_most) or (total < few and by_usual >= usual)):
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
    running = [one for one in workers if not one.paused]
    soon = min(max(0, tokens - len(workers)), len(running))
    usual = max((prospects.new(step.name).usual for step in steps), default=0)
    grows = sum(max(0, prospects.usual(one) - one.memory) for one in workers)
    return Claim(
        jobs=max(len(running), min(1, len(steps))),
        memory=sum(one.memory for one in workers),
        running=tuple(
            _told(one, prospects, past, stopped=_name(one) in stays) for one in active[:MOST_RUNNING]
        ),
        promised=grows + soon * usual,
    )


def _told(one: StepProcess, prospects: Prospects, past: Past, *, stopped: bool) -> RunningCompiler:
    """A process as the order of all builds has it."""
    return RunningCompiler(
        started=one.started,
        holds=one.memory,
        wants=max(0, prospects.wants(one, past.grew[_name(one)][1])),
        grows=max(0, round(past.growth.get(_name(one), 0.0))),
        stopped=stopped,
        guessed=prospects.guessed(one),
    )


def _next(available: int, fastest: float, running: int) -> float:
    """A quarter of the time in which all that is left could be gone."""
    return min(PERIOD, max(SHORTEST, available / (4 * fastest * max(1, running))))


def _hopeless(
    room: MemoryBudget, kept: int, active: Sequence[StepProcess], goes: Sequence[bool], others: int
) -> StepProcess | None:
    """The process that alone has filled what there would be without all others.

    What is used now would not tell: a process that was killed is gone before its memory is.
    """
    going = [one for one, may in zip(active, goes, strict=True) if may]
    if len(going) != 1 or room.available > kept:
        return None
    nearly_all = room.total - min(kept, round(room.total * _NEARLY))
    return going[0] if going[0].memory + others > nearly_all else None


def _words(tokens: int, most: int, waiting: int) -> str:
    if waiting:
        return f"memory: {tokens} of {most} jobs, {waiting} paused"
    return f"memory: {tokens} of {most} jobs" if tokens < most else ""
