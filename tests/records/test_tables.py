"""How a new database is made; one of another version is refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from typing import Any, cast

import pytest
from sqlalchemy import Connection, create_mock_engine

from rocbase.errors import FailureClass, InputError
from rocwright.home import Home
from rocwright.records.database import make_tables
from rocwright.records.opening import open_records
from rocwright.records.schema import RARE


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


@pytest.mark.parametrize("version", ["0001", "9999"])
def test_records_of_another_version_are_refused_with_a_way_out_and_stay(home: Home, version: str) -> None:
    open_records(home).close()
    with sqlite3.connect(home.records) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (version,))
    connection.close()
    before = home.records.read_bytes()
    with pytest.raises(InputError, match="another version") as caught:
        open_records(home)
    assert version in caught.value.cause
    assert "move the records aside" in caught.value.next_step
    assert caught.value.failure is FailureClass.INPUT
    assert home.records.read_bytes() == before


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
        "sys.exit(any(name.split('.')[0] == 'sqlalchemy' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
