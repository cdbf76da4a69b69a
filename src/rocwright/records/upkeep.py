"""Are the records whole? Saving what can be read, making them small, and taking them elsewhere."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock
from pydantic import ValidationError
from sqlalchemy import func, select, text

from rocbase.errors import InputError
from rocbase.model import Frozen
from rocwright.records.database import Database, open_database
from rocwright.records.model import Promotion, Run, RunOutcome, Which
from rocwright.records.read import Records
from rocwright.records.schema import metadata

PAGE = 100


class RecordsCheck(Frozen):
    """What a look at all of the records found; `size` in bytes, 0 where a server has them."""

    place: str
    version: str
    size: int
    rows: dict[str, int]
    problems: tuple[str, ...]


class Repaired(Frozen):
    """How many rows of each table could be read, and where the damaged file lies now."""

    rows: dict[str, int]
    aside: str


def check(database: Database) -> RecordsCheck:
    """Read all of it. Raises what `Database` raises where not even that can be said."""
    problems: list[str] = []
    with database.reading() as connection:
        if connection.dialect.name == "sqlite":
            messages = [row[0] for row in connection.execute(text("PRAGMA integrity_check"))]
            problems += [message for message in messages if message != "ok"]
            strays = connection.execute(text("PRAGMA foreign_key_check")).all()
            problems += [f"a row of {row[0]} belongs to no run" for row in strays[:20]]
        rows = {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in metadata.sorted_tables
        }
    return RecordsCheck(
        place=database.place,
        version=database.version(),
        size=sum(path.stat().st_size for path in _files(Path(database.place)) if path.exists()),
        rows=rows,
        problems=tuple(problems),
    )


def repair(path: Path) -> Repaired:
    """Read what can be read of a damaged file into a new one; the damaged one is moved aside, never removed.

    Raises InputError where there is no file. Runs that are kept as files are taken over by the next open.
    """
    if not path.exists():
        raise InputError(
            f"there are no records at {path}", cause="nothing was recorded there", next_step="rocwright build"
        )
    fresh = path.with_name(f"{path.name}.repaired")
    aside = path.with_name(f"{path.name}.damaged-{datetime.now(UTC).strftime('%Y%m%dT%H%M%SZ')}")
    with FileLock(f"{path}.lock", timeout=60):
        for file in _files(fresh):
            file.unlink(missing_ok=True)
        open_database(fresh).close()
        with contextlib.closing(sqlite3.connect(fresh)) as new, contextlib.closing(_damaged(path)) as old:
            new.execute("PRAGMA foreign_keys = OFF")
            tables = [table for table in metadata.sorted_tables if table.name != "about"]
            rows = {table.name: _save(old, new, table.name, list(table.c.keys())) for table in tables}
            for table in tables:
                # what is left of a run that is gone says nothing
                if "run" in table.c and table.c["run"].foreign_keys:
                    new.execute(f"DELETE FROM {table.name} WHERE run NOT IN (SELECT number FROM runs)")  # noqa: S608
            new.commit()
            new.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for name, target in zip(_files(path), _files(aside), strict=True):
            if name.exists():
                name.rename(target)
        fresh.replace(path)
    return Repaired(rows=rows, aside=str(aside))


def vacuum(database: Database) -> None:
    """Give back the room of what was replaced, and let the database learn anew how it is filled."""
    database.alone("VACUUM", "ANALYZE")


def export(records: Records) -> Iterator[str]:
    """Everything as lines of JSON, the oldest run first: a run with all that it left, or a promotion."""
    numbers = [run.number for run in _pages(records)]
    for number in reversed(numbers):
        (run,) = records.runs(Which(before=number + 1), limit=1)
        outcome = RunOutcome(
            run=run,
            lock=(records.lock(run.lock) or "") if run.lock else "",
            findings=tuple(records.findings(run=run.id)),
            artifacts=tuple(records.artifacts(run=run.id, limit=10_000)),
            samples=tuple(records.samples(run.id)),
        )
        yield outcome.model_dump_json()
    for promotion in reversed(records.promotions(limit=10**9)):
        yield json.dumps({"promotion": promotion.model_dump()})


def take_in(records: Records, lines: Iterable[str]) -> int:
    """Put exported lines on record, but runs that are there; gives how many runs were new.

    Raises InputError for a line that is none.
    """
    count = 0
    recorded = {
        (promotion.run, promotion.channel, promotion.at) for promotion in records.promotions(limit=10**9)
    }
    for number, line in enumerate(lines, 1):
        try:
            data = json.loads(line)
            if "promotion" in data:
                promotion = Promotion.model_validate(data["promotion"])
                if (promotion.run, promotion.channel, promotion.at) not in recorded:
                    records.promote(promotion)
                continue
            outcome = RunOutcome.model_validate(data)
        except (ValueError, ValidationError, TypeError) as error:
            raise InputError(
                f"line {number} is neither a run nor a promotion",
                cause=str(error).splitlines()[0],
                next_step="import a file that rocwright records export wrote",
            ) from error
        if records.run(outcome.run.id) is None:
            records.put(outcome.run, None, outcome.findings, outcome.artifacts, outcome.samples, outcome.lock)
            count += 1
    return count


def _pages(records: Records) -> Iterator[Run]:
    which = Which()
    while page := records.runs(which, limit=PAGE, steps=False):
        yield from page
        which = Which(before=page[-1].number)


def _files(path: Path) -> list[Path]:
    """The database and what SQLite keeps beside it."""
    return [path, *(path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm"))]


def _damaged(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.text_factory = lambda data: data.decode(errors="replace")
    return connection


def _save(old: sqlite3.Connection, new: sqlite3.Connection, table: str, columns: list[str]) -> int:
    """Copy what can be read of a table, from its begin and from its end towards what is damaged."""
    names = ", ".join(f'"{name}"' for name in columns)
    marks = ", ".join("?" * len(columns))
    put = f'INSERT OR IGNORE INTO "{table}" ({names}) VALUES ({marks})'  # noqa: S608 - names of the schema
    count = 0
    for order in ("ASC", "DESC"):
        ask = f'SELECT {names} FROM "{table}" ORDER BY rowid {order}'  # noqa: S608
        try:
            for row in old.execute(ask):
                count += new.execute(put, row).rowcount
            break
        except sqlite3.DatabaseError:
            continue
    return count
