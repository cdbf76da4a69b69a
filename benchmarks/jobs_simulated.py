"""Builds that are only reckoned: compilers with memory over time, so many at once as a policy lets in."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rocwright.execution.jobs.budget import StepJobs
from rocwright.execution.jobs.learn import Learnt
from rocwright.execution.jobs.policy import Decision, decide
from rocwright.execution.jobs.processes import ProcessKind, StepProcess
from rocwright.execution.jobs.room import MemoryBudget

MIB = 1024**2
GIB = 1024**3
TICK = 0.02


# seconds of a processor, and MiB at each eighth of them, as the job server saw compilers: device code of
# llama.cpp by clang, host code of torch by GCC, and in their order those of torchvision by GCC
SEEN: Mapping[str, Sequence[tuple[float, ...]]] = {
    "llama-hip": (
        (1.2, 98, 107, 114, 131, 149, 165, 175, 183, 191),
        (1.4, 81, 106, 121, 137, 152, 165, 178, 192, 192),
        (1.5, 22, 109, 122, 136, 152, 161, 175, 191, 192),
        (1.5, 97, 110, 125, 141, 157, 167, 184, 192, 192),
        (1.6, 90, 112, 126, 143, 166, 176, 187, 194, 194),
        (1.7, 98, 106, 124, 137, 151, 171, 184, 188, 194),
        (1.9, 46, 113, 129, 147, 164, 180, 187, 194, 194),
        (6.3, 98, 157, 202, 213, 213, 213, 217, 217, 217),
        (8.4, 21, 165, 213, 238, 238, 238, 238, 238, 238),
        (8.6, 94, 174, 219, 237, 237, 237, 237, 237, 237),
        (9.3, 69, 175, 224, 237, 237, 237, 237, 237, 237),
        (11.6, 89, 187, 239, 239, 239, 239, 239, 239, 239),
    ),
    "torch": (
        (2.6, 13, 125, 189, 245, 301, 308, 318, 343, 363),
        (3.4, 20, 149, 226, 306, 310, 336, 369, 384, 397),
        (3.9, 18, 113, 191, 279, 312, 329, 372, 415, 438),
        (5.0, 18, 190, 308, 328, 388, 453, 474, 491, 507),
        (5.7, 15, 208, 332, 361, 443, 500, 500, 508, 542),
        (6.5, 27, 186, 307, 384, 484, 530, 535, 544, 589),
        (7.2, 11, 187, 334, 398, 494, 529, 539, 539, 586),
        (7.5, 9, 271, 358, 482, 503, 616, 735, 765, 791),
        (8.7, 12, 204, 354, 445, 516, 538, 538, 586, 615),
        (9.8, 17, 310, 413, 504, 597, 734, 790, 821, 848),
        (10.9, 30, 288, 467, 569, 578, 760, 816, 876, 891),
        (17.2, 11, 365, 576, 631, 778, 924, 1137, 1201, 1241),
    ),
    "torchvision": (
        (8.9, 12, 122, 211, 323, 400, 490, 450, 502, 558),
        (8.4, 16, 161, 301, 359, 449, 504, 454, 509, 556),
        (8.4, 14, 141, 285, 357, 445, 498, 450, 486, 552),
        (11.5, 22, 218, 349, 481, 454, 553, 669, 698, 729),
        (14.0, 23, 229, 362, 477, 452, 554, 672, 698, 724),
        (13.7, 20, 201, 351, 462, 451, 542, 668, 696, 725),
        (10.0, 17, 166, 323, 382, 467, 481, 463, 518, 539),
        (9.3, 16, 163, 314, 377, 476, 448, 481, 524, 548),
        (10.1, 15, 154, 281, 365, 461, 475, 454, 508, 536),
        (8.7, 14, 139, 255, 341, 416, 491, 450, 493, 546),
        (9.1, 15, 148, 274, 343, 431, 482, 459, 529, 573),
        (10.0, 17, 168, 306, 373, 457, 512, 453, 509, 536),
        (10.8, 17, 170, 315, 394, 477, 449, 474, 550, 578),
    ),
}


class Works(Protocol):
    """What is compiled: `seconds` of a processor, and the bytes that it holds when so many are `done`."""

    @property
    def seconds(self) -> float: ...

    def memory(self, done: float) -> int: ...


@dataclass(frozen=True, slots=True)
class Compiler:
    """Takes `seconds` of a processor and comes to `peak` bytes, most of it after the share `late` of them."""

    peak: int
    seconds: float
    late: float = 0.0

    def memory(self, done: float) -> int:
        share = min(1.0, done / self.seconds)
        if share < self.late:
            return round(self.peak * 0.15 * share / self.late)
        rest = (share - self.late) / max(1e-9, 1 - self.late)
        return round(self.peak * (0.15 + 0.85 * min(1.0, rest * 1.2)))


@dataclass(frozen=True, slots=True)
class Recorded:
    """A compiler as it was seen: `curve` is its memory in bytes at equal shares of its `seconds`."""

    seconds: float
    curve: tuple[int, ...]

    def memory(self, done: float) -> int:
        at = min(1.0, done / self.seconds) * (len(self.curve) - 1)
        low = min(int(at), len(self.curve) - 2)
        return round(self.curve[low] + (self.curve[low + 1] - self.curve[low]) * (at - low))


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A build drawn at random: its compilers, bytes of memory, processors, and bytes that its recipe says."""

    compilers: Sequence[Works]
    peaks: Sequence[int]
    memory: int
    cores: int
    recipe: int


def recorded() -> Mapping[str, Sequence[Recorded]]:
    """The compilers that were seen, by what was built."""
    return {
        name: [Recorded(seconds, tuple(round(size * MIB) for size in curve)) for seconds, *curve in rows]
        for name, rows in SEEN.items()
    }


def drawn(seed: int, *, late: bool = False) -> Drawn:
    """Twelve to sixteen compilers a processor, of those that were seen; `late`: each swells at its very end.

    The memory is enough for the largest, and for a fifth to all of the others at their mean. What the recipe
    says is right, or nothing, or far too little, or too much.
    """
    chance = random.Random(seed)
    cores = (2, 4, 8, 16)[seed % 4]
    known = recorded()[("llama-hip", "torch")[seed // 4 % 2]]
    units = [chance.choice(known) for _ in range(cores * chance.randint(12, 16))]
    peaks = [one.curve[-1] for one in units]
    mean = sum(peaks) / len(peaks)
    others = chance.uniform(0.2, 1.0) * (cores - 1) * mean
    return Drawn(
        compilers=[Compiler(one.curve[-1], one.seconds, 0.95) for one in units] if late else units,
        peaks=peaks,
        memory=round(512 * MIB + 1.15 * max(peaks) + others),
        cores=cores,
        recipe=chance.choice((0, 100 * MIB, round(mean), 2 * GIB)),
    )


@dataclass(slots=True)
class _Running:
    pid: int
    compiler: Works
    begun: float
    unit: str = ""
    done: float = 0
    paused: bool = False
    peak: int = 0
    area: float = 0
    looked: float = 0

    def look(self) -> float:
        """Memory times seconds until now, as one sees it who looks only now and then."""
        self.area += self.compiler.memory(self.done) * (self.done - self.looked)
        self.looked = self.done
        return self.area


@dataclass(slots=True)
class Told:
    """How a build went. `killed`: more was wanted than there is; `stuck`: nothing moved any more."""

    seconds: float = 0
    killed: bool = False
    stuck: bool = False
    finished: int = 0
    least: int = 10**9
    pauses: int = 0
    most_used: int = 0
    idle: float = 0
    hopeless: bool = False


@dataclass(slots=True)
class Machine:
    """`cores` processors and `memory` bytes, of which `other` are taken by what is not seen."""

    memory: int
    cores: int
    other: int = 20 * MIB
    running: list[_Running] = field(default_factory=list)

    def used(self) -> int:
        return self.other + sum(one.compiler.memory(one.done) for one in self.running)

    def room(self) -> MemoryBudget:
        used = self.used()
        return MemoryBudget(total=self.memory, used=used)

    def seen(self) -> list[StepProcess]:
        return [
            StepProcess(
                pid=one.pid,
                started=round(one.begun * 100),
                step="step",
                memory=one.compiler.memory(one.done),
                kind=ProcessKind.COMPILE,
                paused=one.paused,
                cpu=one.done,
                area=one.look(),
                unit=one.unit,
            )
            for one in self.running
        ]

    def advance(self, seconds: float) -> None:
        going = [one for one in self.running if not one.paused]
        for one in going:
            one.done += seconds * min(1.0, self.cores / len(going))
            one.peak = max(one.peak, one.compiler.memory(one.done))


def build(
    compilers: Sequence[Works],
    memory: int,
    cores: int,
    most: int,
    *,
    learnt: Learnt | None = None,
    recipe: int = 0,
    fixed: bool = False,
    paused_only: bool = False,
) -> Told:
    """Run them all, `most` at once where the number is `fixed`, else as the policy decides.

    `paused_only`: a tool that was told the number `most`, and whose processes the policy can only pause.
    """
    machine, told, known = Machine(memory, cores), Told(), learnt or Learnt()
    waiting = list(reversed(compilers))
    decision = Decision(tokens=1)
    step = StepJobs(name="step", component="part", reckoned=recipe, jobs=most, shares=not paused_only)
    before: Decision | None = None
    now, look, pid, moved = 0.0, 0.0, 100, 0.0
    while waiting or machine.running:
        if not fixed and now >= look - 1e-9:
            decision = before = decide(
                now, machine.room(), machine.seen(), [step], known, before, most, cores
            )
            look = now + decision.next
            told.pauses += len(decision.pause)
            told.least = min(told.least, decision.tokens)
            told.hopeless = told.hopeless or decision.hopeless is not None
            stop, go = ({one.pid for one in each} for each in (decision.pause, decision.resume))
            for one in machine.running:
                one.paused = (one.paused or one.pid in stop) and one.pid not in go
        tokens = most if fixed or paused_only else decision.tokens
        while waiting and len(machine.running) < tokens:
            machine.running.append(_Running(pid, waiting.pop(), now, str(len(waiting))))
            pid, moved = pid + 1, now
        machine.advance(TICK)
        now += TICK
        going = sum(not one.paused for one in machine.running)
        told.idle += TICK * max(0, cores - going) * bool(waiting)
        told.most_used = max(told.most_used, machine.used())
        if machine.used() > memory:
            told.killed = True
            break
        for one in [one for one in machine.running if one.done >= one.compiler.seconds]:
            machine.running.remove(one)
            note(known, one.peak, one.unit, one.compiler.seconds, one.look())
            told.finished += 1
            moved = now
        if now - moved > 300:
            told.stuck = True
            break
    told.seconds = now
    return told


def note(learnt: Learnt, peak: int, unit: str, seconds: float, area: float) -> None:
    """A compiler has ended."""
    learnt.note("part", "step", ProcessKind.COMPILE, peak, unit=unit, seconds=seconds, area=area)


def learnt_from(compilers: Sequence[Works], path: Path) -> Learnt:
    """What an earlier build of the same compilers has left in a file."""
    learnt = Learnt(path)
    for at, one in enumerate(reversed(compilers)):
        curve = [one.memory(one.seconds * share / 8) for share in range(9)]
        note(learnt, max(curve), str(at), one.seconds, sum(curve) / 9 * one.seconds)
    learnt.save()
    return learnt


def best_fixed(compilers: Sequence[Works], memory: int, cores: int, most: int) -> tuple[int, Told]:
    """The quickest number of jobs that is not killed, of all up to `most`; 0 where there is none."""
    found = [(jobs, build(compilers, memory, cores, jobs, fixed=True)) for jobs in range(1, most + 1)]
    alive = [(jobs, told) for jobs, told in found if not told.killed]
    return min(alive, key=lambda pair: pair[1].seconds, default=(0, Told(killed=True)))


def against_best(work: Drawn, *, learnt: bool = False, best: Told | None = None) -> tuple[Told, float]:
    """How it goes under the policy, and how many times the time of the best fixed number that takes.

    `best` is how it goes with that, where it is known already.
    """
    with tempfile.TemporaryDirectory(prefix="rocwright-bench-") as folder:
        known = learnt_from(work.compilers, Path(folder, "memory.json")) if learnt else Learnt()
    told = build(work.compilers, work.memory, work.cores, work.cores, learnt=known, recipe=work.recipe)
    return told, told.seconds / (best or fastest(work)).seconds


def fastest(work: Drawn) -> Told:
    """How it goes with the best fixed number."""
    return best_fixed(work.compilers, work.memory, work.cores, work.cores)[1]


def compilers(seed: int, count: int = 64, least: int = 100 * MIB, most: int = 2 * GIB) -> list[Compiler]:
    """Of every size, as many small as large by their logarithm; a third swells only at the end."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        peak = round(least * (most / least) ** chance.random())
        seconds = peak / GIB * chance.uniform(0.8, 2.0) + chance.uniform(0.2, 0.6)
        found.append(Compiler(peak, seconds, late=chance.choice((0.0, 0.0, 0.7))))
    return found
