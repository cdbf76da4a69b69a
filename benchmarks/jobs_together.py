"""Several builds at once on one machine, reckoned: with what each tells the others, and without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from benchmarks.jobs_simulated import TICK, Machine, Told, Works, _Running, note
from rocwright.execution.jobs.beside import NOTHING, Beside, Claim, together
from rocwright.execution.jobs.budget import StepJobs
from rocwright.execution.jobs.learn import Learnt
from rocwright.execution.jobs.policy import Decision, decide
from rocwright.execution.jobs.processes import StepProcess
from rocwright.execution.jobs.room import MemoryBudget


@dataclass(slots=True)
class Part:
    """One of the builds: its compilers that wait and run, and how it went; `seconds` is when it ended."""

    waiting: list[Works]
    most: int
    recipe: int
    known: Learnt
    offset: float
    machine: Machine
    running: list[_Running] = field(default_factory=list)
    before: Decision | None = None
    look: float = 0
    claim: Claim = NOTHING
    told: Told = field(default_factory=Told)

    @property
    def over(self) -> bool:
        return not self.waiting and not self.running

    def seen(self) -> list[StepProcess]:
        return replace(self.machine, running=self.running).seen()

    def decides(self, now: float, room: MemoryBudget, beside: Beside) -> None:
        """Look, and do what the policy says."""
        step = StepJobs(name="step", component="part", reckoned=self.recipe, jobs=self.most, shares=True)
        steps = [] if self.over else [step]
        found = decide(
            now, room, self.seen(), steps, self.known, self.before, self.most, self.machine.cores, beside
        )
        self.before, self.look, self.claim = found, now + found.next, found.claim
        self.told.pauses += len(found.pause)
        stop, go = ({one.pid for one in each} for each in (found.pause, found.resume))
        for one in self.running:
            one.paused = (one.paused or one.pid in stop) and one.pid not in go

    def begins(self, now: float, pid: int) -> int:
        """Start what there are tokens for; the next number of a process."""
        tokens = self.before.tokens if self.before else 0
        while self.waiting and len(self.running) < tokens:
            self.running.append(_Running(pid, self.waiting.pop(), now, str(len(self.waiting))))
            pid += 1
        return pid

    def ends(self) -> None:
        """Note what has ended."""
        for one in [one for one in self.running if one.done >= one.compiler.seconds]:
            self.running.remove(one)
            note(self.known, one.peak, one.unit, one.compiler.seconds, one.look())
            self.told.finished += 1


def at_once(
    builds: Sequence[Sequence[Works]], memory: int, cores: int, *, tells: bool = True, apart: float = 0.13
) -> list[Told]:
    """Run builds with nothing learnt, each begun `apart` seconds behind the one before; how each went.

    Where all `tells` is false none knows of the others. All end where more memory is wanted than there is.
    """
    machine = Machine(memory, cores)
    parts = [
        Part(list(reversed(one)), cores, 0, Learnt(), at * apart, machine) for at, one in enumerate(builds)
    ]
    now, pid, moved = 0.0, 100, 0.0
    while not all(part.over for part in parts) and now < 10**5:
        machine.running = [one for part in parts for one in part.running]
        for part in parts:
            if now >= part.offset and now >= part.look - 1e-9 and not part.over:
                others = together(one.claim for one in parts if one is not part)
                room = replace(machine.room(), shared=tells)
                part.decides(now, room, others if tells else Beside())
        for part in parts:
            pid = part.begins(now, pid)
        machine.running = [one for part in parts for one in part.running]
        machine.advance(TICK)
        now += TICK
        if machine.used() > memory:
            for part in parts:
                part.told.killed = True
            break
        before = sum(part.told.finished for part in parts)
        for part in parts:
            part.ends()
            if part.over and not part.told.seconds:
                part.told.seconds, part.claim = now, NOTHING
        moved = now if sum(part.told.finished for part in parts) > before else moved
        if now - moved > 300:
            for part in parts:
                part.told.stuck = not part.over
            break
    for part in parts:
        part.told.seconds = part.told.seconds or now
    return [part.told for part in parts]
