"""The last good log of a step that failed, and what the failed one has that it has not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rocwheel.errors import InputError
from rocwright.diagnosis.novel import Novelty, novelty
from rocwright.diagnosis.read_log import is_compressed, open_log, pieces

if TYPE_CHECKING:
    from rocwright.records.model import Run
    from rocwright.records.read import Records

MOST_READ = 64 * 1024 * 1024
"""Bytes at the end of each log that are looked at."""

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


def compare(failed: Path, good: Path) -> Novelty:
    """What is new in a log, by a good one of the same step. Raises InputError where one cannot be read."""
    with open_log(failed) as bad, open_log(good) as well:
        lines, size = _to_the_end(bad)
        _to_the_end(well)
        return novelty(pieces(bad), pieces(well), skipped=lines, left_out=size)


def _to_the_end(file: IO[bytes]) -> tuple[int, int]:
    """Pass over all but the last bytes of a log, to the begin of a line: the lines and bytes before that.

    A compressed one is read whole: where its end begins is not known before.
    """
    if not file.seekable() or _is_compressed(file):
        return 0, 0
    size = file.seek(0, 2)
    file.seek(max(0, size - MOST_READ))
    if size > MOST_READ:
        file.readline(MOST_READ)
    at = file.tell()
    file.seek(0)
    lines = sum(block.count(b"\n") for block in _blocks(file, at))
    file.seek(at)
    return lines, at


def _is_compressed(file: IO[bytes]) -> bool:
    first = file.read(8)
    file.seek(0)
    return is_compressed(first)


def _blocks(file: IO[bytes], size: int) -> Iterator[bytes]:
    while size > 0 and (block := file.read(min(size, 1024 * 1024))):
        size -= len(block)
        yield block
