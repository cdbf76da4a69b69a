"""Runs whose process is gone."""

from __future__ import annotations

import platform
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rocwright.processes.owner import Owner, this_process
from rocwright.records.model import Run, StepRun, Which

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from rocwright.records.read import Records


def me() -> dict[str, str]:
    """Who runs: this machine by name, and this process with its start and the machine's own number."""
    owner = this_process()
    return {"machine": platform.node(), "process": f"{owner.pid}-{owner.start}-{_machine()}"}


def end_the_dead(records: Records) -> None:
    """Runs of this machine that say that they run, and whose process is no more, were killed; those that
    wait in the queue of a process that is no more were stopped."""
    for state, outcome in (("running", "killed"), ("queued", "stopped")):
        for run in records.runs(Which(state=state), limit=1000):
            if is_gone(run.machine, run.process):
                records.database.write(partial(_end, run=ended_as(outcome, run), state=state))


def _end(connection: Connection, run: Run, state: str) -> None:
    from rocwright.records import write

    # it may have ended as it should since it was read, and its process with it
    if write.state(connection, run.id) == state:
        write.put(connection, run, dict(enumerate(run.steps)))


def is_gone(machine: str, process: str) -> bool:
    """Whether what ran there (`Run.machine`, `Run.process`) ran on this machine, and does no more; what runs
    elsewhere nobody here knows."""
    pid, start, number = (*process.split("-", 2), "", "", "")[:3]
    here = (machine, number) == (platform.node(), _machine())
    return here and pid.isdigit() and start.isdigit() and not Owner(pid=int(pid), start=int(start)).alive()


def _machine() -> str:
    """Two machines may have one name."""
    try:
        return Path("/etc/machine-id").read_text()[:8]
    except OSError:
        return ""


def ended_as(outcome: str, run: Run) -> Run:
    """The run, ended so, with all in it that had not ended."""

    def ended(step: StepRun) -> StepRun:
        left = "killed" if outcome == "killed" else "stopped"
        words = {"queued": "skipped", "running": left, "ended": step.outcome}
        return step.model_copy(update={"state": "ended", "outcome": words[step.state]})

    steps = tuple(ended(one) for one in run.steps)
    return run.model_copy(update={"state": "ended", "outcome": outcome, "steps": steps})
