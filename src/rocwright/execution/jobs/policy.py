"""How many processes there may be now, and which must wait: a pure function of what is seen.

New jobs are admitted by what jobs usually take. Those that run are kept in an order in which all of them can
end: the ones that lack most stop before they take what the others may still want (Dijkstra's banker).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

from rocwright.execution.jobs.beside import NOBODY, NOTHING, Beside, Claim, RunningCompiler
from rocwright.execution.jobs.budget import PERIOD, SLOW, Budget, Job, Past, StepJobs
from rocwright.execution.jobs.learn import UNKNOWN, Learnt
from rocwright.execution.jobs.processes import ProcessKind, StepProcess
from rocwright.execution.jobs.room import MemoryBudget

# Seconds between two looks if memory is nearly gone.
SHORTEST = 0.02

# Seconds without any work after which a process is taken to wait for another one. A process that wants a
# processor and gets none may grow at any time.
PATIENCE = 5.0

# The share of time (PSI) from which on no memory counts as available: everything waits for some.
STALLED = 0.25

# Seconds from a look until the processes that it pauses have stopped.
_SIGNAL = 0.03

# The share of all memory that a process may lack, and still count as having filled it.
_NEARLY = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do until the next look.

    `tokens` is how many processes there may be in all, with each step's first one and the `jobs` of steps
    that do not share. `next` is when to look again, in seconds. `hopeless` is a process that wants more by
    itself than there is. `claim` is what the build has of the machine, for others.
    """

    tokens: int
    pause: tuple[StepProcess, ...] = ()
    resume: tuple[StepProcess, ...] = ()
    next: float = PERIOD
    hopeless: StepProcess | None = None
    claim: Claim = NOTHING
    past: Past = field(default_factory=Past)


def decide(
    clock: float,
    room: MemoryBudget,
    processes: Sequence[StepProcess],
    steps: Sequence[StepJobs],
    learnt: Learnt,
    previous: Decision | None,
    limit: int,
    cores: int | None = None,
    neighbours: Beside = NOBODY,
) -> Decision:
    """Decide what to do now, with at most `limit` processes on `cores` (None: as many as `limit`).

    `neighbours` are the other builds, `previous` is the last decision, and `clock` is monotonic.
    """
    if not room.shared:
        neighbours = replace(neighbours, memory=0, promised=0, running=())
    past = _remember(clock, room, processes, previous, neighbours)
    cores = cores or limit
    limit = neighbours.most(limit, max(cores, limit))
    budget = Budget(steps, learnt, processes, past, room.total, cores)
    cores = min(cores, limit)
    reserve = margin(room, 1 + neighbours.builds * room.shared)
    available = 0 if _stalls(room, past, previous) else room.available - reserve
    active = [
        job for job in budget.jobs if job.may_stop and clock - past.progress[job.process.name] < PATIENCE
    ]
    goes = _going(available, reserve, active, neighbours.running, past, cores)
    stays = {job.process.name for job, may in zip(active, goes, strict=True) if not may}
    tokens = 0 if stays else budget.admits(available - neighbours.promised, limit, cores)
    tokens = min(limit, max(tokens, len(steps), 1))
    running = min(tokens + len(neighbours.running), cores)
    wait = min(PERIOD, max(SHORTEST, available / (4 * past.fastest * max(1, running))))
    going = [job.process for job in active if job.process.name not in stays]
    return Decision(
        tokens=tokens,
        pause=tuple(job.process for job in active if job.process.name in stays and not job.process.paused),
        # also those that have not stopped yet (a signal waits until its process has a processor), or turned
        # out to drive others meanwhile
        resume=tuple(process for process in processes if process.name in past.stopped - stays),
        next=wait,
        hopeless=_hopeless(room, reserve, going, past.foreign[room.bound]),
        claim=budget.claim(active, stays, tokens),
        past=replace(past, stopped=frozenset(stays), waits=wait),
    )


def fitting(room: MemoryBudget, learnt: Learnt, component: str, step: str, memory: int, limit: int) -> int:
    """Return how many jobs of a step usually fit at once, at least one: for tools that take a number."""
    usual = per_job(learnt, component, step, memory)
    return max(1, min(limit, (room.available - margin(room)) // max(1, usual)))


def per_job(learnt: Learnt, component: str, step: str, memory: int) -> int:
    """Return the usual peak of a step's compilers, and its recipe's `memory` if none is known."""
    return learnt.peaks(component, step, ProcessKind.COMPILE).usual(memory or UNKNOWN)


def margin(room: MemoryBudget, builds: int = 1) -> int:
    """Return the bytes to keep free for kernel memory, other programs, and what `builds` are about to do."""
    return round(min(max(room.total * 0.03, builds * 32 * 1024**2), 1024**3))


def _remember(
    clock: float,
    room: MemoryBudget,
    processes: Sequence[StepProcess],
    previous: Decision | None,
    neighbours: Beside,
) -> Past:
    past = previous.past if previous is not None else Past()
    passed = max(clock - past.time, 1e-3) if past.time is not None else past.waits
    growth, grew, progress = {}, {}, {}
    foreign = room.used - neighbours.memory
    for process in processes:
        name, old = process.name, past.processes.get(process.name)
        if old is not None and passed > _SIGNAL / 3:
            growth[name] = (process.memory - old.memory) / passed
        last = past.grew.get(name, (0, 0.0))
        grew[name] = (process.memory, process.cpu) if process.memory > last[0] * 1.02 else last
        idle = old is not None and old.cpu == process.cpu and not process.paused and not process.ready
        progress[name] = past.progress.get(name, clock) if idle else clock
        foreign -= process.memory * (process.kind is not ProcessKind.OTHER)
    lowest = min(max(0, foreign), past.foreign.get(room.bound, max(0, foreign)))
    ended = sum(
        name not in progress for name, old in past.processes.items() if old.kind is not ProcessKind.OTHER
    )
    return Past(
        time=clock,
        fastest=max(SLOW, past.fastest * 0.5 ** (passed / 20), *growth.values()),
        growth=growth or past.growth,
        grew=grew,
        late=max(0.0, min(1.0, max(past.late * 0.5 ** (passed / 10), passed - past.waits))),
        progress=progress,
        stopped=past.stopped & progress.keys(),
        processes={process.name: process for process in processes},
        ended=past.ended + ended,
        foreign={**past.foreign, room.bound: lowest},
        stalled=room.pressure.total if room.pressure is not None else 0,
    )


def _stalls(room: MemoryBudget, past: Past, previous: Decision | None) -> bool:
    """Whether everything waits for memory: in the kernel's last ten seconds, or since the last look."""
    if room.pressure is None:
        return False
    earlier = previous.past if previous is not None else past
    passed = (past.time or 0) - (earlier.time or 0)
    lately = (past.stalled - earlier.stalled) / passed if earlier.stalled and passed > 0 else 0.0
    return max(room.pressure.full, lately) > STALLED


def _going(
    available: int,
    reserve: int,
    active: Sequence[Job],
    competing: Sequence[RunningCompiler],
    past: Past,
    cores: int,
) -> list[bool]:
    """Decide which of the jobs go on, where those of other builds take their turns in the same order.

    The one that lacks least always goes on, and the next ones if they leave to all before them what they may
    want. A job gives back what it took when it ends, so that those after it lose nothing.
    """
    mine = [job.claim(stopped=job.stopped) for job in active]
    jobs = [*mine, *competing]
    if not mine or sum(job.wants for job in jobs) <= available:
        return [True] * len(mine)
    # jobs of which nothing is known are expected to come to the same: the one that holds most lacks least
    alike = max((job.holds + job.wants for job in jobs if job.guessed), default=0)
    jobs.sort(key=lambda job: (alike - job.holds if job.guessed else job.wants, job.started))
    ahead = (2 * SHORTEST + _SIGNAL + past.late) * min(1.0, cores / len(jobs))
    burst = round(past.fastest * ahead)
    remaining, spare, going = available - burst, inf, set[int]()
    for job in jobs:
        growth = min(burst, round(ahead * max(2 * job.grows, SLOW)))
        needs = min(job.wants, growth + (burst + reserve // 2) * job.stopped)
        if spare >= needs:
            going.add(id(job))
            spare -= needs
        spare = min(spare, remaining - job.wants)
        remaining += job.holds
    return [id(job) in going for job in mine]


def _hopeless(
    room: MemoryBudget, reserve: int, going: Sequence[StepProcess], foreign: int
) -> StepProcess | None:
    """Return the process that alone has filled what there would be without all others.

    What is used now would not tell: a process that was killed is gone before its memory is.
    """
    if len(going) != 1 or room.available > reserve:
        return None
    nearly_all = room.total - min(reserve, round(room.total * _NEARLY))
    return going[0] if going[0].memory + foreign > nearly_all else None
