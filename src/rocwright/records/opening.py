"""The records, opened: with what waited as files, and runs of ended processes ended."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from rocbase.errors import ExplainedError
from rocwright.home import Home
from rocwright.records.ended import ended_as, is_gone
from rocwright.records.model import Run, Which
from rocwright.records.place import place, there

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from rocwright.records.read import Records


def open_records(home: Home) -> Records:
    """The records, to be read and written; made where there are none.

    Runs that were kept as files are taken over, and runs whose process is gone are ended.
    """
    from rocwright.records.database import open_database
    from rocwright.records.read import Records
    from rocwright.records.spool import take_over

    records = Records(open_database(place(home)))
    if not records.database.read_only:
        # who cannot do it now leaves it to the next, and can read all the same
        with suppress(ExplainedError, OSError):
            take_over(records, home)
            end_the_dead(records)
    return records


def read_records(home: Home) -> Records:
    """The same for one who only asks: where nothing is on record, nothing is made on the disk."""
    if there(home):
        return open_records(home)
    from rocwright.records.database import in_memory
    from rocwright.records.read import Records

    return Records(in_memory())


def end_the_dead(records: Records) -> None:
    """Runs of this machine that say that they run, and whose process is no more, were killed; those that
    wait in the queue of a process that is no more were stopped."""
    for state, outcome in (("running", "killed"), ("queued", "stopped")):
        for run in records.runs(Which(state=state), limit=1000):
            if is_gone(run.machine, run.process):
                ended = ended_as(outcome, _as_long_as_seen(records, run))
                records.database.write(partial(_end, run=ended, state=state))


def _as_long_as_seen(records: Records, run: Run) -> Run:
    """The run with what its steps had taken when they were last seen; at its end nobody could say."""
    last = {sample.step: sample.at for sample in records.samples(run.id)}
    since = {step.name: _seconds(run.started, step.started) for step in run.steps if step.started}
    steps = tuple(
        step.model_copy(update={"seconds": max(0.0, last[step.name] - since[step.name])})
        if step.state == "running" and step.name in last and step.name in since
        else step
        for step in run.steps
    )
    return run.model_copy(update={"seconds": max(last.values(), default=run.seconds), "steps": steps})


def _seconds(since: str, until: str) -> float:
    try:
        return (datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds()
    except ValueError:
        return 0.0


def _end(connection: Connection, run: Run, state: str) -> None:
    from rocwright.records import write

    # it may have ended as it should since it was read, and its process with it
    if write.state(connection, run.id) == state:
        write.put(connection, run, dict(enumerate(run.steps)))
