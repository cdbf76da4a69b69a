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
from rocwright.sources.bases.tools import has_tools
from rocwright.sources.programs import check_programs


class Outlook(Frozen):
    """Wall seconds, bytes of disk and memory that the steps to run need with `jobs` of `wanted` jobs.

    `unlocked` are those of which the lock does not know the files yet: what they take, and how long, comes on
    top. `memory_per_job` is what the largest compiler takes. `bound` says what keeps the jobs fewer than
    wanted; `short` what there is too little of; `cannot` why this machine can run none of it. `sources` are
    the ways in which the time is known.
    """

    left: Left
    sources: tuple[str, ...]
    disk: int
    unlocked: tuple[str, ...] = ()
    memory: int
    memory_per_job: int = 0
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
    steps = [decision.step for decision in decisions if decision.state is State.RUN]
    compile_steps = [step for step in steps if compiles(step)]
    reckoned = [step for step in compile_steps if step.resources.memory]
    job_limit = min(
        (fitting(room, learnt, step.component, step.name, step.resources.memory, jobs) for step in reckoned),
        default=jobs,
    )
    unlocked = [step for step in steps if isinstance(step.action, FetchAction) and step.action.pending]
    seconds = {
        step.key: expected.get(step.name, Expected()).seconds(most_jobs(step, job_limit)) or None
        for step in steps
    } | {step.key: None for step in unlocked}
    remaining = whole(steps, seconds, job_limit)
    wanted_disk = sum(step.resources.disk for step in steps)
    peaks = [
        (per_job(learnt, step.component, step.name, step.resources.memory), step.resources.cores)
        for step in reckoned
    ]
    wanted_memory = max((peak * min(job_limit, cores) for peak, cores in peaks), default=0)
    short = [f"{size(disk)} of disk are free"] if wanted_disk > disk else []
    short += [f"{size(room.available)} of memory are available"] if wanted_memory > room.available else []
    return Outlook(
        left=remaining.model_copy(
            update={"unknown": tuple(step.name for step in compile_steps if seconds[step.key] is None)}
        ),
        sources=tuple(
            dict.fromkeys(expected[step.name].source for step in compile_steps if seconds[step.key])
        ),
        disk=wanted_disk,
        unlocked=tuple(step.name for step in unlocked),
        memory=wanted_memory,
        memory_per_job=max((peak for peak, _ in peaks), default=0),
        jobs=job_limit,
        wanted=jobs,
        bound="memory" if job_limit < jobs else "",
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


def check_installed(decisions: Sequence[Decision], home: Home) -> None:
    """Raise InputError if the host lacks programs that the steps to run start."""
    actions = [decision.step.action for decision in decisions if decision.state is State.RUN]
    purposes: list[str] = [action.family for action in actions if isinstance(action, BaseAction)]
    pins = [pin for action in actions if isinstance(action, FetchAction) for pin in action.files]
    purposes += ["git" for pin in pins if isinstance(pin.origin, GitOrigin)]
    check_programs(purposes, tools="debian" not in purposes or has_tools(home))


def outlook_line(forecast: Outlook) -> str:
    """The same for people: what it needs, what this machine can do, and how well the time is known."""
    memory = f", {size(forecast.memory)} memory" if forecast.memory else ""
    jobs = (
        f"{forecast.jobs} jobs"
        if forecast.jobs == forecast.wanted
        else f"{forecast.jobs} jobs of {forecast.wanted} ({forecast.bound})"
    )
    can = forecast.cannot or "; ".join(forecast.short) or f"ok, {jobs}"
    return f"{time_text(forecast)}, {disk_text(forecast)}{memory}      this machine: {can}"


def disk_text(forecast: Outlook, *, brief: bool = False) -> str:
    """Return the disk that is needed, as far as it is known; `brief` leaves out why that is all."""
    if brief and forecast.unlocked:
        return f"at least {size(forecast.disk)} disk" if forecast.disk else "disk not known"
    if not forecast.unlocked:
        return f"{size(forecast.disk)} disk"
    names = f"{', '.join(forecast.unlocked[:3])}{', ...' if len(forecast.unlocked) > 3 else ''}"
    if not forecast.disk:
        return f"disk not known ({names} not locked)"
    return f"at least {size(forecast.disk)} disk ({names} not locked)"


def time_text(forecast: Outlook) -> str:
    """Return the time that is needed, and how well it is known."""
    unknown = forecast.left.unknown
    names = f"no history of {', '.join(unknown[:3])}{', ...' if len(unknown) > 3 else ''}"
    if unknown and not forecast.sources:
        return names
    if unknown:
        return f"at least {duration(forecast.left.seconds)} ({names})"
    if forecast.unlocked:
        return f"at least {duration(forecast.left.seconds)}" if forecast.left.seconds else "time not known"
    basis = " by the recipes (nothing was built here yet)" if forecast.sources == ("recipe",) else ""
    return f"about {duration(forecast.left.seconds)}{basis}"
