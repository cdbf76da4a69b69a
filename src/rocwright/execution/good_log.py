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

# Runs in which a good one is looked for.
MOST_RUNS = 50


def new_lines(records: Records, runs: Path, run: Run, step: str) -> Novelty | None:
    """What the log of a step that failed in `run` has and that of its last good run had not; None where there
    is no good one, or either cannot be read. `runs` is the folder with the runs' logs."""
    failed = next(
        (attempt.log for attempt in reversed(run.steps) if attempt.name == step and attempt.log), ""
    )
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
    candidates = [
        (entry.gpu == run.gpu, runs / entry.run / Path(entry.step.log).name)
        for entry in records.steps(which, limit=MOST_RUNS)
        if entry.step.name == step and entry.step.outcome == "built" and entry.step.log
    ]
    readable = [
        candidate for candidate in candidates if candidate[1].is_file() and not candidate[1].is_symlink()
    ]
    return max(readable, key=lambda candidate: candidate[0], default=(False, None))[1]
