"""The records' file as a build has it: opened, asked and written without SQLAlchemy.

Only what is new, or is whole, of this version and has nothing to be taken over or ended first, is opened
so; for all else there is `place.open_records`, which does all of that and says what is wrong.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar
from urllib.parse import quote

from rocbase.files.atomic import write_atomic
from rocwright.home import Home
from rocwright.records import faults
from rocwright.records.ended import is_gone
from rocwright.records.model import Artifact, Finding, Run, Sample, StepRun, StepTime
from rocwright.records.place import RUN, TAKEN, place
from rocwright.records.write import Connection, put, run_plain

T = TypeVar("T")

# The version of the schema, in Alembic's own table: the first migration can begin from there.
VERSION = "0002"

# What schema.py says, for SQLite.
TABLES = Path(__file__).with_name("schema.sql")


class Plain:
    """An open file. It may be used by one thread at a time; what it raises is said in words."""

    dialect = SimpleNamespace(name="sqlite")

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode=rw",
            uri=True,
            timeout=faults.WAIT,
            isolation_level=None,
            check_same_thread=False,
        )
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute("PRAGMA foreign_keys = ON")

    def exec_driver_sql(self, statement: str, parameters: Any = None, /) -> sqlite3.Cursor:
        """Run a statement, once for each mapping where there is a list of them."""
        if isinstance(parameters, list):
            return self._connection.executemany(statement, parameters)
        return self._connection.execute(statement, parameters or {})

    def put(
        self,
        run: Run,
        steps: Mapping[int, StepRun] | None = None,
        findings: Iterable[Finding] = (),
        artifacts: Iterable[Artifact] = (),
        samples: Iterable[Sample] = (),
        lock: str = "",
    ) -> int:
        """As `Records.put`."""
        changed = dict(enumerate(run.steps)) if steps is None else steps
        parts = (list(findings), list(artifacts), list(samples), lock)
        return self.write(lambda: put(self, run, changed, *parts))

    def times(self) -> list[StepTime]:
        """As `Records.times`."""
        names = [*StepTime.__dataclass_fields__]
        columns = ", ".join(f'"{name}"' for name in names)
        with self._explained():
            # names of fields of ours
            sql = f'SELECT {columns} FROM "step_times" ORDER BY "run" DESC'  # noqa: S608
            rows = self.exec_driver_sql(sql).fetchall()
        return [StepTime(**dict(zip(names, row, strict=True))) for row in rows]

    def built(self, step: str, key: str) -> list[tuple[str, str]]:
        """As `Records.built`."""
        with self._explained():
            return built(self, step, key)

    def close(self) -> None:
        self._connection.close()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise faults.explained(error, str(self.path)) from error

    def write(self, work: Callable[[], T]) -> T:
        """All of the work, or nothing of it; again where somebody else came between."""
        for last in (False,) * (faults.TRIES - 1) + (True,):
            try:
                self.exec_driver_sql("BEGIN IMMEDIATE")
                try:
                    outcome = work()
                    self.exec_driver_sql("COMMIT")
                except BaseException:
                    with contextlib.suppress(sqlite3.Error):
                        self.exec_driver_sql("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                if last or faults.code_of(error) not in faults.AGAIN:
                    raise faults.explained(error, str(self.path)) from error
            else:
                return outcome
        raise AssertionError


def built(connection: Connection, step: str, key: str) -> list[tuple[str, str]]:
    """The runs that built that step under that key, the newest first: their ids, and the files of its log."""
    ask = """SELECT "runs"."id", "steps"."log" FROM "steps" JOIN "runs" ON "runs"."number" = "steps"."run"
        WHERE "steps"."name" = :step AND "steps"."key" = :key AND "steps"."outcome" = 'built'
        ORDER BY "steps"."run" DESC, "steps"."place" DESC LIMIT 200"""
    return [(row[0], row[1]) for row in run_plain(connection, ask, {"step": step, "key": key}).fetchall()]


def open_plain(home: Home, *, make: bool = False) -> Plain | None:
    """The file of the records, where nothing is to be done before it is used; None for all else.

    With `make` a new one is made where there is none.
    """
    path = place(home)
    if isinstance(path, str):
        return None
    with contextlib.suppress(sqlite3.Error, OSError):
        if make and not path.exists():
            _make(path)
        if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
            return None
        opened = Plain(path)
        try:
            if _ready(opened, home):
                return opened
        except BaseException:
            opened.close()
            raise
        opened.close()
    return None


def _make(path: Path) -> None:
    """A new file with its tables. One that is cut short is made whole by whoever opens it next."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # what was done on this machine is its owner's to show; the companions take its mode
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with contextlib.closing(Plain(path)) as plain:
        plain.exec_driver_sql("PRAGMA journal_mode = WAL")
        plain.write(lambda: _make_tables(plain))


def _make_tables(file: Plain) -> None:
    for statement in TABLES.read_text().split(";\n"):
        file.exec_driver_sql(statement)
    file.exec_driver_sql("INSERT INTO alembic_version VALUES (:version)", {"version": VERSION})
    file.exec_driver_sql("INSERT INTO about VALUES (:name, 0, 0)", {"name": uuid.uuid4().hex})


def _ready(file: Plain, home: Home) -> bool:
    version = file.exec_driver_sql('SELECT "version_num" FROM "alembic_version"').fetchone()
    if version != (VERSION,):
        return False
    (name,) = file.exec_driver_sql('SELECT "name" FROM "about"').fetchone()
    marker = home.runs / TAKEN
    if home.runs.is_dir() and not (marker.exists() and marker.read_text() == name):
        if any(home.runs.glob(f"*/{RUN}")):
            return False
        write_atomic(marker, name)
    ask = 'SELECT "machine", "process" FROM "runs" WHERE "state" <> \'ended\''
    return not any(is_gone(machine, process) for machine, process in file.exec_driver_sql(ask))
