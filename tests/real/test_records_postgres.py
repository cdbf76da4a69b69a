"""The records in a real PostgreSQL server: everything that they do in SQLite, and what only a server does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.records import test_records as same
from tests.records.server import postgres, programs
from tests.records.test_faults import MANY, build
from tests.records.test_upkeep import CELL

from rocbase.errors import ExplainedError, InputError, NetworkError
from rocwright.home import Home
from rocwright.records import faults, upkeep
from rocwright.records.database import open_database
from rocwright.records.model import Promotion, Which
from rocwright.records.opening import open_records
from rocwright.records.place import VARIABLE
from rocwright.records.read import Records

pytestmark = pytest.mark.real


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """One for each test: what is in it is taken over by each new database."""
    return Home(tmp_path / "home")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    found = programs()
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no PostgreSQL server is installed")
        pytest.skip("no PostgreSQL server is installed")
    with postgres(found) as (url, _):
        yield url


@pytest.fixture
def url(server: str, monkeypatch: pytest.MonkeyPatch, home: Home) -> str:
    monkeypatch.setenv(VARIABLE, server)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return server


@pytest.fixture
def records(url: str, home: Home) -> Iterator[Records]:
    with open_records(home) as opened:
        yield opened


SAME = [
    test
    for name, test in vars(same).items()
    if name.startswith("test_") and name != same.test_who_only_asks_leaves_nothing_on_the_disk.__name__
]


@pytest.mark.parametrize("test", SAME, ids=[test.__name__ for test in SAME])
def test_it_is_as_in_sqlite(test: object, records: Records) -> None:
    assert callable(test)
    test(records)


def test_a_build_writes_there_and_says_nothing(url: str, home: Home) -> None:
    run, said = build(home)
    assert said == []
    assert not home.records.exists()
    with open_records(home) as records:
        assert records.run(run.id) is not None


def test_several_builds_at_once_lose_nothing(url: str, home: Home) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", MANY, str(home.path), "one"], stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    assert [one.communicate()[1] for one in writers] == [b"", b"", b""]
    with open_records(home) as records:
        assert records.count(Which(state="ended", outcome="built")) == 24
        (cell,) = records.matrix()
        assert cell.run == records.runs(limit=1)[0].id


def test_it_is_looked_after_and_taken_elsewhere(records: Records, home: Home, tmp_path: Path) -> None:
    for day in (1, 2):
        records.put(same.run(day))
    records.promote(Promotion(**CELL, channel="nightly", run="run-1", why="it was built"))
    upkeep.vacuum(records.database)
    found = upkeep.check(records.database)
    assert (found.rows["runs"], found.problems, "secret" in found.place) == (2, (), False)
    with Records(open_database(tmp_path / "other.sqlite")) as other:
        assert upkeep.take_in(other, upkeep.export(records)) == 2
        assert other.runs() == records.runs()
        assert other.matrix() == records.matrix()


def test_one_of_another_version_is_refused(records: Records, url: str, home: Home) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(InputError, match="another version") as caught:
        open_records(home)
    assert "secret" not in str(caught.value.as_dict())


def test_who_has_no_right_to_write_can_read(url: str, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = build(home)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS reader")
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA public TO reader")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    monkeypatch.setenv(VARIABLE, url.replace("rocwright:", "reader:"))
    with open_records(home) as records:
        assert records.run(run.id) is not None
        with pytest.raises(InputError, match="are not writable"):
            records.put(run)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP OWNED BY reader")


def test_one_who_holds_the_tables_for_long_is_told(
    url: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(home)
    monkeypatch.setattr(faults, "WAIT", 1)
    with psycopg.connect(url) as holder:
        holder.execute("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE")
        _, said = build(home)
        holder.rollback()
    assert "locked" in said[0]
    with open_records(home) as records:
        assert records.count() == 2


def test_a_server_that_went_away_is_told_and_found_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    found = programs()
    if found is None:
        pytest.skip("no PostgreSQL server is installed")
    with postgres(found) as (url, _):
        monkeypatch.setenv(VARIABLE, url)
        kept = open_records(home)
        assert kept.runs() == []
    with pytest.raises(NetworkError, match="does not answer"):
        kept.runs()
    kept.close()
    run, said = build(home)
    assert "does not answer" in said[0]
    with postgres(found) as (url, _):
        monkeypatch.setenv(VARIABLE, url)
        with open_records(home) as records:
            assert records.run(run.id) is not None


def test_a_wrong_password_or_database_is_told_without_the_password(url: str, home: Home) -> None:
    for wrong in (url.replace("/postgres?", "/nowhere?"), url.replace("rocwright:", "nobody:")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(VARIABLE, wrong)
            with pytest.raises(ExplainedError) as caught:
                open_records(home)
        assert "secret" not in str(caught.value.as_dict())
