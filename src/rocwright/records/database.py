"""The database of the records: where it is, how it is opened, and its failures in words."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, QueuePool, StaticPool, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from rocwright.errors import InputError, InternalError, NetworkError, OutOfDiskError, RocwrightError
from rocwright.records.schema import VERSIONS
from rocwright.records.upgrade import bring_up_to_date, make_tables

T = TypeVar("T")

WAIT = 5.0
"""Seconds that somebody else may write before it is too long."""
TRIES = 3

_NO_TABLE = {"42P01"}
_AGAIN = {"SQLITE_BUSY_SNAPSHOT", "SQLITE_LOCKED", "40001", "40P01"}
_GONE = ("08", "57P")
"""How PostgreSQL's codes begin where it cannot be reached, or goes away."""


class Database:
    """An open database: many may read, one writes at a time; each of its blocks is one transaction.

    What goes wrong is raised in words: OutOfDiskError, InputError (no right to write, a newer version),
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
                if _code(error) not in _AGAIN:
                    raise explained(error, self.place) from error
                time.sleep(0.05)
        raise AssertionError

    @contextlib.contextmanager
    def _told(self, *, raw: bool = False) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            if raw:
                raise
            raise explained(error, self.place) from error

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
                found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        except DBAPIError as error:
            if _code(error) in _NO_TABLE or "no such table" in str(error.orig):
                return ""
            raise explained(error, self.place) from error
        return str(found or "")

    def close(self) -> None:
        self.engine.dispose()


def open_database(place: str | Path) -> Database:
    """The database at a URL or in a file, made or brought up to date where that is needed."""
    database = _sqlite(Path(place)) if isinstance(place, Path) else _server(place)
    try:
        version = database.version()
        if version == VERSIONS[-1]:
            return database
        if version and version not in VERSIONS:
            raise InputError(
                f"the records at {database.place} were written by a newer rocwright",
                cause=f"their schema has version {version}, this rocwright knows {VERSIONS[-1]}",
                next_step="use that rocwright; or set ROCWRIGHT_RECORDS to another place for this one",
            )
        if database.read_only:
            raise read_only(database.place, "their schema is older, and cannot be brought up to date")
        bring_up_to_date(database.engine, database.place, database.write)
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
        made = sqlite3.connect(uri, uri=True, timeout=WAIT, isolation_level=None, check_same_thread=False)
        made.execute("PRAGMA synchronous = NORMAL")
        made.execute("PRAGMA foreign_keys = ON")
        return made

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
            connect_args={"connect_timeout": int(WAIT), "options": f"-c lock_timeout={int(WAIT * 1000)}"},
        )
    except ImportError as error:
        raise InputError(
            f"the records are at {place}, and nothing here can talk to a PostgreSQL server",
            cause=str(error),
            next_step="python -m pip install 'rocwright[postgres]'",
        ) from error
    return Database(engine, place)


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is None or parsed.get_backend_name() not in {"postgresql", "postgres"}:
        raise InputError(
            "the place of the records is no URL that rocwright knows",
            cause="it is kept in an SQLite file or a PostgreSQL server",
            next_step="ROCWRIGHT_RECORDS=postgresql://USER:PASSWORD@HOST/DATABASE, or a file's path",
        )
    return parsed


def _begin(connection: Connection) -> None:
    # whoever will write says so at once: then nobody can come between its look and its change
    options = connection.get_execution_options()
    if options.get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writes") else "BEGIN")


def read_only(place: str, cause: str = "") -> InputError:
    """The failure to write where that is not allowed."""
    return InputError(
        f"the records at {place} may not be written",
        cause=cause or "the file, its folder or the database is read-only for this user",
        next_step="give yourself the right to write there, or set ROCWRIGHT_RECORDS to a place of yours",
    )


def explained(error: DBAPIError, place: str) -> RocwrightError:
    """A failure of the database in words."""
    code, said = _code(error), str(error.orig).strip()
    if code in {"SQLITE_FULL", "53100"} or (code.startswith("SQLITE_IOERR") and _full(place)):
        return OutOfDiskError(
            f"the disk of the records at {place} is full",
            cause=said,
            next_step="free some room there; what could not be written is taken over afterwards",
        )
    match code:
        case "SQLITE_PERM" | "25006" | "42501" | "SQLITE_CANTOPEN":
            return read_only(place, said)
        case "SQLITE_NOTADB":
            return damaged(place, said)
        case "55P03":
            return _locked(place, said)
    if code.startswith("SQLITE_READONLY"):
        return read_only(place, said)
    if code.startswith("SQLITE_CORRUPT"):
        return damaged(place, said)
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return _locked(place, said)
    if code.startswith(_GONE) or (not code and error.connection_invalidated) or _no_server(error):
        return NetworkError(
            f"the records' server does not answer: {place}",
            cause=said.splitlines()[0] if said else "",
            next_step="start it, or correct ROCWRIGHT_RECORDS",
        )
    return InternalError(
        f"the records at {place} cannot be used",
        cause=f"{said} {code}".strip(),
        next_step="rocwright records check says whether they are whole",
    )


def damaged(place: str, cause: str) -> InternalError:
    """The failure of a database that is no longer whole."""
    return InternalError(
        f"the records at {place} are damaged",
        cause=cause,
        next_step="rocwright records check --repair saves what can be read; artifacts are not touched",
    )


def _locked(place: str, cause: str) -> InternalError:
    return InternalError(
        f"the records at {place} were locked for more than {WAIT:.0f} s",
        cause=f"another program holds them: {cause}",
        next_step="end whatever has them open (a database browser, a backup), then run again",
    )


def _code(error: DBAPIError) -> str:
    """SQLite's name of the failure, or PostgreSQL's five signs."""
    found: Any = getattr(error.orig, "sqlite_errorname", None) or getattr(error.orig, "sqlstate", None)
    return str(found or "")


def _full(file: str) -> bool:
    """Whether there is no room for what SQLite writes beside a file."""
    with contextlib.suppress(OSError):
        return shutil.disk_usage(Path(file).parent).free < 2**16
    return False


def _no_server(error: DBAPIError) -> bool:
    # a connection that never came about has no code
    return type(error.orig).__module__.startswith("psycopg") and not _code(error)
