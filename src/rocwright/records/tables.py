"""Makes the tables of a new database."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator

from sqlalchemy import Connection, Engine, insert, inspect, text

from rocbase.errors import InternalError
from rocwright.records.plain import VERSION
from rocwright.records.schema import about, metadata, runs

LOCK = 7_623_108_221
"""The number of the lock under which a PostgreSQL server gets its tables; any will do."""


def create(engine: Engine, place: str, write: Callable[[Callable[[Connection], None]], None]) -> None:
    """Make the tables of the database at `place` in one transaction, which `write` does."""
    with _alone(engine, place):
        if engine.dialect.name == "sqlite":
            # not within a transaction, and without waiting for anybody: hence the lock
            raw = engine.raw_connection()
            try:
                raw.cursor().execute("PRAGMA journal_mode = WAL")
            finally:
                raw.close()
        write(_make_once)


def make_tables(connection: Connection) -> None:
    """Make all tables."""
    for index in runs.indexes:
        options = index.dialect_options
        options[connection.dialect.name]["where"] = options["sqlite"]["where"]
    metadata.create_all(connection)
    connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
    connection.execute(text("INSERT INTO alembic_version VALUES (:version)"), {"version": VERSION})
    connection.execute(insert(about).values(name=uuid.uuid4().hex, changed=0, cells=0))


def _make_once(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
    if not inspect(connection).has_table("alembic_version"):
        make_tables(connection)


@contextlib.contextmanager
def _alone(engine: Engine, place: str) -> Iterator[None]:
    """Keep other processes from doing the same meanwhile."""
    if engine.dialect.name != "sqlite":
        yield
        return
    from filelock import FileLock, Timeout

    try:
        with FileLock(f"{place}.lock", timeout=60):
            yield
    except Timeout as error:
        raise InternalError(
            f"the records at {place} are being created by another process",
            cause="another rocwright has been creating them for a minute",
            next_step="wait for it or stop it, then run again",
        ) from error
