"""Whether memory and disk suffice for what is to be built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rocbase.units import size
from rocwright.diagnosis.facts import Grade, HostFacts
from rocwright.diagnosis.machine.model import FreeSpace, Machine, Memory
from rocwright.doctor.findings.model import DoctorFinding, Say, speaker
from rocwright.doctor.needs import BuildNeed

# A root file system with ROCm has some 60,000 files; a stack has a few of them and its own trees.
FEW_INODES = 200_000

# Percent of the time in which something waits for memory, from which on a build only makes it worse.
BUSY = 10.0


def room(machine: Machine, facts: HostFacts, needs: tuple[BuildNeed, ...]) -> Iterator[DoctorFinding]:
    """Memory, cgroups, swap and pressure; bytes and inodes of each place that is written to."""
    say = _speaker(facts, needs)
    if machine.memory is None:
        yield say("no-memory-told", "warning", "how much memory there is cannot be read")
    else:
        yield from _memory(machine.memory, machine.processors, needs, facts)
    for space in _each_device(machine.rooms):
        yield from _disk(space, needs, facts)


def _speaker(facts: HostFacts, needs: Iterable[BuildNeed]) -> Say:
    return speaker(facts, tuple(need.stack for need in needs))


def _memory(
    memory: Memory, processors: int, needs: tuple[BuildNeed, ...], facts: HostFacts
) -> Iterator[DoctorFinding]:
    say = _speaker(facts, needs)
    usable = min(memory.total, memory.limit or memory.total)
    short = [need for need in needs if need.memory_per_job > usable]
    message = f"{size(memory.total)} of memory, {size(memory.available)} available"
    if short:
        names = ", ".join(f"{need.stack} ({size(need.memory_per_job)})" for need in short)
        grade: Grade = "error" if len(needs) == 1 else "warning"
        yield _speaker(facts, short)("memory", grade, f"{message}: too little for {names}")
    else:
        per_job = max((need.memory_per_job for need in needs), default=0)
        jobs = min(processors, usable // per_job) if per_job else processors
        can = (
            f"{jobs} of {processors} jobs at once for the largest" if per_job else f"{processors} processors"
        )
        yield DoctorFinding(name="memory", grade="ok", what=f"{message}; {can}")
    if memory.limit is not None:
        yield say(
            "cgroup",
            "warning",
            f"a cgroup allows {size(memory.limit)} of {size(memory.total)} ({memory.limited_by})",
        )
    if memory.delegated is False:
        message = "you may not make cgroups: steps have no memory limit of their own"
        yield say("no-delegation", "warning", message)
    if memory.swap and memory.swap_free < memory.swap // 20:
        yield say("swap", "warning", f"{size(memory.swap_free)} of {size(memory.swap)} swap are free")
    if memory.pressure is None:
        yield say("no-pressure", "note", "the kernel does not report memory pressure")
    elif memory.pressure > BUSY:
        yield say(
            "memory", "warning", f"memory is short now: processes waited {memory.pressure:g} % of the time"
        )


def _each_device(rooms: tuple[FreeSpace, ...]) -> Iterator[FreeSpace]:
    """Each file system once, with all that lies on it."""
    by_device: dict[int, list[FreeSpace]] = {}
    for space in rooms:
        by_device.setdefault(space.device, []).append(space)
    for spaces in by_device.values():
        yield spaces[0].model_copy(update={"what": ", ".join(space.what for space in spaces)})


def _disk(space: FreeSpace, needs: tuple[BuildNeed, ...], facts: HostFacts) -> Iterator[DoctorFinding]:
    message = f"{size(space.free)} of {size(space.total)} free for {space.what} ({space.path})"
    short = [need for need in needs if need.disk > space.free]
    if short:
        names = ", ".join(f"{need.stack} ({size(need.disk)})" for need in short)
        grade: Grade = "error" if len(short) == len(needs) else "warning"
        yield _speaker(facts, short)("disk", grade, f"{message}: too little for {names}")
    else:
        yield DoctorFinding(name="disk", grade="ok", what=message)
    if space.inodes_free is not None and space.inodes_free < FEW_INODES:
        yield _speaker(facts, needs)(
            "inodes",
            "error" if space.inodes_free < FEW_INODES // 10 else "warning",
            f"{space.inodes_free:,} inodes are free for {space.what} ({space.path})",
        )
