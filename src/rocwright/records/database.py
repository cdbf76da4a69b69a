"""The database of the records: where it is, how it is opened, and its failures in words."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, QueuePool, StaticPool, create_engine, event, insert, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from rocbase.errors import ExplainedError, InputError, InternalError
from rocwright.plugins import install_command
from rocwright.records import faults
from rocwright.records.faults import AGAIN, TRIES, code_of, explained, read_only
from rocwright.records.plain import VERSION
from rocwright.records.schema import about, metadata, runs

T = TypeVar("T")

_NO_TABLE = {"42P01"}


class Database:
    """An open database: many may read, one writes at a time; each of its blocks is one transaction.

    What goes wrong is raised in words: OutOfDiskError, InputError (no right to write, another version),
    NetworkError (a server that does not answer), InternalError (damaged, or locked for too long).
    """

    def __init__(self, engine: Engine, place: str, *, read_only: bool = False) -> None:
        self.engine, self.place, self.read_only = engine, place, read_only
        self._writer = engine.execution_options(writes=True)
        if engine.dialect.name == "sqlite":
            event.listen(engine, "begin", _begin)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """One look at the whole, as of one moment."""
        with self._told(), self.engine.connect() as connection, connection.begin():
            yield connection

    def write(self, work: Callable[[Connection], T]) -> T:
        """All of the work, or nothing of it; again where somebody else came between."""
        if self.read_only:
            raise read_only(self.place)
        for last in (False,) * (TRIES - 1) + (True,):
            try:
                with self._told(raw=not last), self._writer.begin() as connection:
                    return work(connection)
            except DBAPIError as error:
                if code_of(error.orig) not in AGAIN:
                    raise _explained(error, self.place) from error
                time.sleep(0.05)
        raise AssertionError

    @contextlib.contextmanager
    def _told(self, *, raw: bool = False) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            if raw:
                raise
            raise _explained(error, self.place) from error

    def alone(self, *statements: str) -> None:
        """Statements that stand in no transaction."""
        if self.read_only:
            raise read_only(self.place)
        with self._told(), self.engine.connect() as connection:
            apart = connection.execution_options(isolation_level="AUTOCOMMIT")
            for statement in statements:
                apart.exec_driver_sql(statement)

    def version(self) -> str:
        """The version of its schema; "" where it has none yet."""
        try:
            with self.engine.connect() as connection:
                version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        except DBAPIError as error:
            if code_of(error.orig) in _NO_TABLE or "no such table" in str(error.orig):
                return ""
            raise _explained(error, self.place) from error
        return str(version or "")

    def close(self) -> None:
        self.engine.dispose()


def open_database(place: str | Path) -> Database:
    """The database at a URL or in a file, made if there is none. Raises InputError for another schema."""
    database = _sqlite(Path(place)) if isinstance(place, Path) else _server(place)
    try:
        version = database.version()
        if version and version != VERSION:
            raise InputError(
                f"the records at {database.place} were written by another version of rocwright",
                cause=f"their schema has version {version}, this rocwright reads {VERSION}",
                next_step="use that version, move the records aside, or set ROCWRIGHT_RECORDS",
            )
        if not version:
            if database.read_only:
                raise read_only(database.place, "it has no tables yet")
            create(database.engine, database.place, database.write)
    except BaseException:
        database.close()
        raise
    return database


def in_memory() -> Database:
    """An empty database that goes with this process."""

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)

    database = Database(create_engine("sqlite://", creator=connect, poolclass=StaticPool), "memory")
    database.write(make_tables)
    return database


def _sqlite(path: Path) -> Database:
    """The file; only for reading where it may not be written."""
    shut = path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
    if not shut:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # what was done on this machine is its owner's to show; the companions take its mode
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise read_only(str(path), str(error)) from error
    # without its two companions a database in WAL mode can be read from a closed folder only as it lies
    alone = shut and not path.with_name(f"{path.name}-wal").exists()
    uri = f"file:{quote(str(path))}" + ("?immutable=1" if alone else "?mode=ro" if shut else "")

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri, uri=True, timeout=faults.WAIT, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    # as many connections as a server of pages has threads, and then some
    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool, pool_size=10, max_overflow=60)
    return Database(engine, str(path), read_only=shut)


def _server(url: str) -> Database:
    parsed = _parsed(url)
    place = parsed.render_as_string(hide_password=True)
    try:
        engine = create_engine(
            parsed.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            connect_args={
                "connect_timeout": int(faults.WAIT),
                "options": f"-c lock_timeout={int(faults.WAIT * 1000)}",
            },
        )
    except ImportError as error:
        raise InputError(
            f"the records are at {place}, but no PostgreSQL driver is installed",
            cause=str(error),
            next_step=install_command("postgres"),
        ) from error
    return Database(engine, place)


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.get_backend_name() not in {"postgresql", "postgres"}:
        raise InputError(
            "ROCWRIGHT_RECORDS is not a supported URL or path",
            cause="records are kept in an SQLite file or a PostgreSQL database",
            next_step="set ROCWRIGHT_RECORDS=postgresql://USER:PASSWORD@HOST/DATABASE, or to the "
            "path of a file",
        )
    return parsed


def _begin(connection: Connection) -> None:
    # whoever will write says so at once: then nobody can come between its look and its change
    options = connection.get_execution_options()
    if options.get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writes") else "BEGIN")


def _explained(error: DBAPIError, place: str) -> ExplainedError:
    return explained(error.orig, place, cut=error.connection_invalidated)


# The number of the lock under which a PostgreSQL server gets its tables; any will do.
LOCK = 7_623_108_221


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
