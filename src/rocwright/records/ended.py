"""Who runs, whether they still do, and a run as it ended with its process."""

from __future__ import annotations

import platform
from pathlib import Path

from rocbase.processes.owner import Owner, this_process
from rocwright.records.model import Run, StepRun


def me() -> dict[str, str]:
    """Who runs: this machine by name, and this process with its start and the machine's own number."""
    owner = this_process()
    return {"machine": platform.node(), "process": f"{owner.pid}-{owner.start}-{_machine()}"}


def is_gone(machine: str, process: str) -> bool:
    """Whether what ran there (`Run.machine`, `Run.process`) ran on this machine, and does no more; what runs
    elsewhere nobody here knows."""
    pid, start, number = (*process.split("-", 2), "", "", "")[:3]
    is_local = (machine, number) == (platform.node(), _machine())
    return (
        is_local and pid.isdigit() and start.isdigit() and not Owner(pid=int(pid), start=int(start)).alive()
    )


def _machine() -> str:
    """Two machines may have one name."""
    try:
        return Path("/etc/machine-id").read_text()[:8]
    except OSError:
        return ""


def ended_as(outcome: str, run: Run) -> Run:
    """The run, ended so, with all in it that had not ended."""

    def ended(step: StepRun) -> StepRun:
        stopped = "killed" if outcome == "killed" else "stopped"
        words = {"queued": "skipped", "running": stopped, "ended": step.outcome}
        return step.model_copy(update={"state": "ended", "outcome": words[step.state]})

    steps = tuple(ended(step) for step in run.steps)
    return run.model_copy(update={"state": "ended", "outcome": outcome, "steps": steps})
