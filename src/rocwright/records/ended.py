"""Runs whose process is gone."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from rocwright.records.model import Run, StepRun, Which

if TYPE_CHECKING:
    from rocwright.records.read import Records


def me() -> dict[str, str]:
    """Who runs: this machine, and this process with its start."""
    from rocwright.sandbox.state import this_process

    owner = this_process()
    return {"machine": platform.node(), "process": f"{owner.pid}-{owner.start}"}


def end_the_dead(records: Records) -> None:
    """Runs of this machine that say that they run, and whose process is no more, were killed."""
    for run in records.runs(Which(state="running"), limit=1000):
        if run.machine == platform.node() and not _alive(run.process):
            records.put(ended_as("killed", run))


def _alive(process: str) -> bool:
    from rocwright.sandbox.state import Owner

    pid, _, start = process.partition("-")
    return bool(pid.isdigit() and start.isdigit() and Owner(pid=int(pid), start=int(start)).alive())


def ended_as(outcome: str, run: Run) -> Run:
    """The run, ended so, with all in it that had not ended."""

    def ended(step: StepRun) -> StepRun:
        left = "killed" if outcome == "killed" else "stopped"
        words = {"queued": "skipped", "running": left, "ended": step.outcome}
        return step.model_copy(update={"state": "ended", "outcome": words[step.state]})

    steps = tuple(ended(one) for one in run.steps)
    return run.model_copy(update={"state": "ended", "outcome": outcome, "steps": steps})
