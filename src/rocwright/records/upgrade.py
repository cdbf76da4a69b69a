"""Makes the tables of a new database, and brings an older one up to date."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from sqlalchemy import Connection, Engine, insert, inspect, text

from rocwheel.errors import InternalError
from rocwright.records.plain import VERSIONS
from rocwright.records.schema import about, metadata, runs

LOCK = 7_623_108_221
"""The number of the lock under which a PostgreSQL server is brought up to date; any will do."""


def bring_up_to_date(
    engine: Engine, place: str, write: Callable[[Callable[[Connection], None]], None]
) -> None:
    """Make the tables of the database at `place`, or take all steps to their newest version: all in one
    transaction, which `write` does."""
    with _alone(engine, place):
        if engine.dialect.name == "sqlite":
            # not within a transaction, and without waiting for anybody: hence the lock
            raw = engine.raw_connection()
            try:
                raw.cursor().execute("PRAGMA journal_mode = WAL")
            finally:
                raw.close()
        write(_upgrade)


def make_tables(connection: Connection) -> None:
    """All tables as they are now. What the steps of `migrations` make one after another is the same."""
    for index in runs.indexes:
        options = index.dialect_options
        options[connection.dialect.name]["where"] = options["sqlite"]["where"]
    metadata.create_all(connection)
    connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
    connection.execute(text("INSERT INTO alembic_version VALUES (:version)"), {"version": VERSIONS[-1]})
    connection.execute(insert(about).values(name=uuid.uuid4().hex, changed=0, cells=0))


def _upgrade(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({LOCK})"))
    if not inspect(connection).has_table("alembic_version"):
        make_tables(connection)
        return
    # loaded only here: it takes longer than all that a build says of its records
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


@contextlib.contextmanager
def _alone(engine: Engine, place: str) -> Iterator[None]:
    """No other process does the same meanwhile."""
    if engine.dialect.name != "sqlite":
        yield
        return
    from filelock import FileLock, Timeout

    try:
        with FileLock(f"{place}.lock", timeout=60):
            yield
    except Timeout as error:
        raise InternalError(
            f"the records at {place} are being upgraded by another process",
            cause="another rocwright has been upgrading them for a minute",
            next_step="wait for it or stop it, then run again",
        ) from error
