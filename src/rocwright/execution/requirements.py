"""What a build needs of this machine, and what this machine has: time, disk, memory, jobs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence

from rocbase.model import Frozen
from rocbase.units import duration, size
from rocwright.execution.estimate import Expected, Left, compiles, most_jobs, whole
from rocwright.execution.jobs.learn import Learnt
from rocwright.execution.jobs.policy import fitting, per_job
from rocwright.execution.jobs.room import MemoryBudget, read_room
from rocwright.home import Home
from rocwright.model.architecture import cannot_build
from rocwright.model.steps import BaseAction, FetchAction, GitOrigin
from rocwright.plan.decide import Decision, State
from rocwright.sources.programs import check_programs


class Outlook(Frozen):
    """Wall seconds, bytes of disk and memory that the steps to run need with `jobs` of `wanted` jobs.

    `unlocked` are those of which the lock does not know the files yet: what they take, and how long, comes on
    top. `bound` says what keeps the jobs fewer than wanted; `short` what there is too little of; `cannot` why
    this machine can run none of it. `sources` are the ways in which the time is known.
    """

    left: Left
    sources: tuple[str, ...]
    disk: int
    unlocked: tuple[str, ...] = ()
    memory: int
    jobs: int
    wanted: int
    bound: str = ""
    short: tuple[str, ...] = ()
    cannot: str = ""


def outlook(
    decisions: Sequence[Decision],
    expected: Mapping[str, Expected],
    jobs: int,
    *,
    disk: int,
    room: MemoryBudget,
    learnt: Learnt,
) -> Outlook:
    """Of the steps to run, where `disk` bytes are free: with the memory that jobs were found to take here,
    else with what the recipes say."""
    steps = [one.step for one in decisions if one.state is State.RUN]
    building = [step for step in steps if compiles(step)]
    reckoned = [step for step in building if step.resources.memory]
    most = min(
        (fitting(room, learnt, one.component, one.name, one.resources.memory, jobs) for one in reckoned),
        default=jobs,
    )
    unlocked = [one for one in steps if isinstance(one.action, FetchAction) and one.action.pending]
    seconds = {
        step.key: expected.get(step.name, Expected()).seconds(most_jobs(step, most)) or None for step in steps
    } | {step.key: None for step in unlocked}
    left = whole(steps, seconds, most)
    wanted_disk = sum(step.resources.disk for step in steps)
    wanted_memory = max(
        (
            per_job(learnt, one.component, one.name, one.resources.memory) * min(most, one.resources.cores)
            for one in reckoned
        ),
        default=0,
    )
    short = [f"{size(disk)} of disk are free"] if wanted_disk > disk else []
    short += [f"{size(room.available)} of memory are available"] if wanted_memory > room.available else []
    return Outlook(
        left=left.model_copy(
            update={"unknown": tuple(step.name for step in building if seconds[step.key] is None)}
        ),
        sources=tuple(dict.fromkeys(expected[step.name].source for step in building if seconds[step.key])),
        disk=wanted_disk,
        unlocked=tuple(one.name for one in unlocked),
        memory=wanted_memory,
        jobs=most,
        wanted=jobs,
        bound="memory" if most < jobs else "",
        short=tuple(short),
        cannot=next(filter(None, (cannot_build(step.runs_on) for step in steps if step.runs_on)), ""),
    )


def outlook_here(
    decisions: Sequence[Decision],
    expected: Mapping[str, Expected],
    home: Home,
    jobs: int | None = None,
    memory: int | None = None,
) -> Outlook:
    """The same on this machine, with what the user allows of it: all cores, and what memory there is."""
    existing = next(path for path in (home.path, *home.path.parents) if path.exists())
    return outlook(
        decisions,
        expected,
        jobs or os.cpu_count() or 1,
        disk=shutil.disk_usage(existing).free,
        room=read_room(memory, None),
        learnt=Learnt.load(home),
    )


def check_installed(decisions: Sequence[Decision]) -> None:
    """Raise InputError if the host lacks programs that the steps to run start."""
    actions = [one.step.action for one in decisions if one.state is State.RUN]
    purposes: list[str] = [action.family for action in actions if isinstance(action, BaseAction)]
    pins = [pin for action in actions if isinstance(action, FetchAction) for pin in action.files]
    purposes += ["git" for pin in pins if isinstance(pin.origin, GitOrigin)]
    check_programs(purposes)


def outlook_line(one: Outlook) -> str:
    """The same for people: what it needs, what this machine can do, and how well the time is known."""
    memory = f", {size(one.memory)} memory" if one.memory else ""
    jobs = f"{one.jobs} jobs" if one.jobs == one.wanted else f"{one.jobs} jobs of {one.wanted} ({one.bound})"
    can = one.cannot or "; ".join(one.short) or f"ok, {jobs}"
    return f"{_time(one)}, {_disk(one)}{memory}      this machine: {can}"


def _disk(one: Outlook) -> str:
    if not one.unlocked:
        return f"{size(one.disk)} disk"
    names = f"{', '.join(one.unlocked[:3])}{', ...' if len(one.unlocked) > 3 else ''}"
    if not one.disk:
        return f"disk not known ({names} not locked)"
    return f"at least {size(one.disk)} disk ({names} not locked)"


def _time(one: Outlook) -> str:
    unknown = one.left.unknown
    names = f"no history of {', '.join(unknown[:3])}{', ...' if len(unknown) > 3 else ''}"
    if unknown and not one.sources:
        return names
    if unknown:
        return f"at least {duration(one.left.seconds)} ({names})"
    if one.unlocked:
        return f"at least {duration(one.left.seconds)}" if one.left.seconds else "time not known"
    told = " by the recipes (nothing was built here yet)" if one.sources == ("recipe",) else ""
    return f"about {duration(one.left.seconds)}{told}"
