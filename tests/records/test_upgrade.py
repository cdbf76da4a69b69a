"""Databases of other versions, and how a new one is made."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_mock_engine

from rocwheel.errors import FailureClass, InputError
from rocwright.home import Home
from rocwright.records import migrations
from rocwright.records.database import open_database
from rocwright.records.opening import open_records
from rocwright.records.plain import VERSIONS
from rocwright.records.schema import RARE, metadata
from rocwright.records.upgrade import make_tables
from rocwright.records.upkeep import repair

FOLDER = Path(migrations.__file__).parent
FIRST = (Path(__file__).parent / "first.sql").read_text()
"""A database as the first version made it, with a run and a promotion."""


def config() -> Config:
    made = Config()
    made.set_main_option("script_location", str(FOLDER))
    return made


def tables(path: Path) -> set[str]:
    with sqlite3.connect(path) as connection:
        return {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}


def test_the_versions_are_those_of_the_steps() -> None:
    steps = [one.revision for one in ScriptDirectory.from_config(config()).walk_revisions()]
    assert tuple(reversed(steps)) == VERSIONS


def test_the_steps_one_after_another_give_the_tables_of_a_new_database(home: Home, tmp_path: Path) -> None:
    open_records(home).close()
    path = tmp_path / "stepped.sqlite"
    sqlite3.connect(path).executescript(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"
    ).close()
    database = open_database(path)
    assert tables(path) == tables(home.records)
    with database.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    database.close()


def test_a_server_too_gets_indexes_of_what_is_rare_alone() -> None:
    said: list[str] = []

    def note(statement: Any, *_: Any) -> None:
        said.append(" ".join(str(statement.compile(dialect=server.dialect)).split()))

    server = create_mock_engine("postgresql+psycopg://", note)
    make_tables(cast("Connection", server))
    for name, usual in RARE.items():
        assert f"CREATE INDEX runs_by_{name} ON runs ({name}, number) WHERE {name} <> '{usual}'" in said


def test_records_in_a_file_load_nothing_for_servers(home: Home) -> None:
    script = """
import sys
from rocwright.home import Home
from rocwright.records.opening import open_records
open_records(Home.default()).close()
print([name for name in sys.modules if "postgresql" in name])
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert home.records.exists()
    assert told.stdout == "[]\n"


def test_an_older_one_goes_on_with_all_that_it_has(home: Home) -> None:
    with sqlite3.connect(home.records) as connection:
        connection.executescript(FIRST)
    connection.close()
    with open_records(home) as records:
        assert records.database.version() == VERSIONS[-1]
        (cell,) = records.matrix()
        assert (cell.variant, cell.outcome, cell.channels["nightly"].run) == ("", "built", "run-1")
        (promotion,) = records.promotions(variant="")
        assert promotion.channel == "nightly"
        (run,) = records.runs()
        assert (run.id, run.variant) == ("run-1", "")
        pinned = run.model_copy(update={"id": "run-2", "variant": "torch=2.6.0", "outcome": "failed"})
        records.put(pinned)
        assert [(one.variant, one.outcome) for one in records.matrix()] == [
            ("", "built"),
            ("torch=2.6.0", "failed"),
        ]


def test_what_is_damaged_of_an_older_one_is_saved(home: Home) -> None:
    with sqlite3.connect(home.records) as connection:
        connection.executescript(FIRST)
    connection.close()
    saved = repair(home.records)
    assert (saved.rows["runs"], saved.rows["cells"]) == (1, 1)
    with open_records(home) as records:
        assert records.matrix()[0].run == "run-1"


def test_one_from_a_newer_version_is_refused_with_a_way_out(home: Home) -> None:
    open_records(home).close()
    with sqlite3.connect(home.records) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(InputError, match="newer rocwright") as caught:
        open_records(home)
    assert "9999" in caught.value.cause
    assert "ROCWRIGHT_RECORDS" in caught.value.next_step
    assert caught.value.failure is FailureClass.INPUT


def test_several_who_open_a_new_one_at_once_make_it_once(home: Home) -> None:
    script = (
        "from rocwright.home import Home; from rocwright.records.opening import open_records;"
        "open_records(Home.default())"
    )
    started = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(4)]
    assert [one.wait(60) for one in started] == [0, 0, 0, 0]
    with sqlite3.connect(home.records) as connection:
        assert connection.execute("SELECT count(*) FROM about").fetchone() == (1,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_nothing_of_the_database_is_loaded_before_it_is_needed() -> None:
    script = (
        "import sys, rocwright.flow, "
        "rocwright.execution.runs, rocwright.cli.history, rocwright.verify.standing;"
        "sys.exit(any(name.split('.')[0] in ('sqlalchemy', 'alembic') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
