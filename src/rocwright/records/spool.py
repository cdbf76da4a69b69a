"""Runs that are kept as files, because the database could not be told of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, select

from rocbase.files.atomic import write_atomic
from rocwright.home import Home
from rocwright.records import schema, write
from rocwright.records.model import RunOutcome
from rocwright.records.place import RUN, TAKEN
from rocwright.records.read import Records

BATCH = 200


def spool(home: Home, outcome: RunOutcome) -> None:
    """Keep a run as a file; the next who opens the records takes it over."""
    write_atomic(home.runs / outcome.run.id / RUN, outcome.model_dump_json(indent=1) + "\n")
    (home.runs / TAKEN).unlink(missing_ok=True)


def take_over(records: Records, home: Home) -> None:
    """Put all runs that are files on record, but those that are there. The files stay as they are."""
    if not home.runs.is_dir():
        return
    with records.database.reading() as connection:
        name = connection.execute(select(schema.about.c.name)).scalar_one()
    marker = home.runs / TAKEN
    if marker.exists() and marker.read_text() == name:
        return
    paths = sorted(home.runs.glob(f"*/{RUN}"))
    for offset in range(0, len(paths), BATCH):
        some = paths[offset : offset + BATCH]
        records.database.write(partial(_take, paths=some))
    write_atomic(marker, name)


def _take(connection: Connection, paths: Iterable[Path]) -> None:
    names = {path.parent.name: path for path in paths}
    ended = select(schema.runs.c.id).where(schema.runs.c.id.in_(names), schema.runs.c.state == "ended")
    recorded = set(connection.execute(ended).scalars())
    for outcome in _read([path for name, path in names.items() if name not in recorded]):
        steps = dict(enumerate(outcome.run.steps))
        write.put(connection, outcome.run, steps, outcome.findings, outcome.artifacts, lock=outcome.lock)


def _read(paths: Iterable[Path]) -> Iterator[RunOutcome]:
    """What the files tell; one that a kill cut short is passed over."""
    for path in paths:
        try:
            yield RunOutcome.model_validate_json(path.read_bytes())
        except (OSError, ValueError):
            continue
