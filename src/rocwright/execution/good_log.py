"""The last good log of a step that failed, and what the failed one has that it has not."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from rocbase.errors import InputError
from rocwright.diagnosis.compare import compare
from rocwright.diagnosis.novel import Novelty

if TYPE_CHECKING:
    from rocwright.records.model import Run
    from rocwright.records.read import Records

MOST_RUNS = 50
"""Runs in which a good one is looked for."""


def new_lines(records: Records, runs: Path, run: Run, step: str) -> Novelty | None:
    """What the log of a step that failed in `run` has and that of its last good run had not; None where there
    is no good one, or either cannot be read. `runs` is the folder with the runs' logs."""
    failed = next((one.log for one in reversed(run.steps) if one.name == step and one.log), "")
    good = last_good(records, runs, run, step)
    if not failed or good is None:
        return None
    with contextlib.suppress(InputError):
        return compare(runs / run.id / Path(failed).name, good)
    return None


def last_good(records: Records, runs: Path, run: Run, step: str) -> Path | None:
    """The log of the last time that a step of that stack and base was built before `run`: for the same GPUs
    where there is one, else for others."""
    from rocwright.records.model import Which

    which = Which(stack=run.stack, base=run.base, step=step, before=run.number)
    found = [
        (at.gpu == run.gpu, runs / at.run / Path(at.step.log).name)
        for at in records.steps(which, limit=MOST_RUNS)
        if at.step.name == step and at.step.outcome == "built" and at.step.log
    ]
    there = [one for one in found if one[1].is_file() and not one[1].is_symlink()]
    return max(there, key=lambda one: one[0], default=(False, None))[1]
