"""`rocwright records`: whole or not, what can be saved, and the way from one database to another."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Connection
from tests.records.test_records import run

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.cli import cli
from rocwright.home import Home
from rocwright.records import write
from rocwright.records.model import Finding, Promotion, Sample
from rocwright.records.opening import open_records
from rocwright.records.upkeep import take_in

CELL = {"stack": "vllm", "gpu": "gfx1151", "base": "debian:sid"}


def records(*words: str, **more: str) -> Result:
    return CliRunner().invoke(cli, ["records", *words], **more)  # type: ignore[arg-type]


def fill(home: Home, count: int) -> None:
    """So many runs, with all that a run may leave, and a promotion."""
    found = [Finding(component="torch", check="wheel", name="canonical form", ok=True, sha256="a" * 64)]
    sample = [Sample(step="torch", at=1.5, memory=7, processes=2)]

    def work(connection: Connection) -> None:
        for number in range(1, count + 1):
            one = run(number % 28 + 1, "failed" if number % 5 == 0 else "built", id=f"run-{number}")
            write.put(connection, one, dict(enumerate(one.steps)), found, samples=sample)

    with open_records(home) as opened:
        opened.database.write(work)
        opened.promote(Promotion(**CELL, channel="nightly", run="run-7", why="it was built"))


@pytest.fixture
def filled(home: Home) -> Home:
    fill(home, 30)
    return home


def test_whole_records_say_where_they_are_and_what_they_hold(filled: Home) -> None:
    told = json.loads(records("check", "--json").stdout)
    assert told["place"] == str(filled.records)
    assert (told["rows"]["runs"], told["rows"]["cells"], told["problems"]) == (30, 1, [])
    assert "30" in records("check").stdout


def test_what_can_be_read_of_a_damaged_file_is_saved_and_the_file_is_kept(home: Home) -> None:
    """A page in the middle of the file is noise: what is before and behind it in each table is saved."""
    fill(home, 300)
    data = bytearray(home.records.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 8192] = os.urandom(8192)
    home.records.write_bytes(bytes(data))
    before = records("check")
    assert before.exit_code != 0
    done = records("check", "--repair", "--json")
    assert done.exit_code == 0, done.output
    with open_records(home) as opened:
        assert opened.count() >= 200
        assert opened.matrix()[0].channels["nightly"].run == "run-7"
    (aside,) = home.path.glob("records.sqlite.damaged-*Z")
    assert aside.read_bytes() == bytes(data)


def test_records_of_which_nothing_is_left_begin_anew(filled: Home) -> None:
    filled.records.write_bytes(b"x" * 10_000)
    assert "saved 0 rows" in records("check", "--repair").output
    with open_records(filled) as opened:
        assert opened.count() == 0


def test_everything_can_be_taken_to_another_database(
    filled: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = records("export").stdout
    with open_records(filled) as opened:
        before = (opened.runs(limit=500), opened.matrix(), opened.findings(sha256="a" * 64), opened.times())
        samples = opened.samples("run-9")
    monkeypatch.setenv("ROCWRIGHT_RECORDS", str(tmp_path / "other.sqlite"))
    assert records("import", input=lines).stdout == "30 runs imported\n"
    assert records("import", input=lines).stdout == "0 runs imported\n"
    with open_records(filled) as opened:
        after = (opened.runs(limit=500), opened.matrix(), opened.findings(sha256="a" * 64), opened.times())
        assert opened.samples("run-9") == samples
        assert len(opened.promotions()) == 1
    assert after == before


def test_a_line_that_is_none_is_told_by_its_number(home: Home) -> None:
    with open_records(home) as opened:
        for line in ("{", "7", '{"run": 1}', '{"promotion": {}}'):
            with pytest.raises(InputError, match="line 1"):
                take_in(opened, [line])


@each(
    "said",
    (
        *({"id": name} for name in ("..", "", "/etc", "../x")),
        *(
            {"steps": [{"name": "a", "key": "k", "outcome": "built", "log": name}]}
            for name in ("..", "../x", "/x")
        ),
    ),
)
def test_a_run_whose_folder_or_log_would_be_elsewhere_is_not_imported(
    home: Home, said: dict[str, object]
) -> None:
    plain = {
        "command": "build",
        "started": "",
        "seconds": 1,
        "stack": "x",
        "gpu": [],
        "base": "",
        "outcome": "",
    }
    with open_records(home) as opened, pytest.raises(InputError, match="line 2"):
        take_in(opened, [json.dumps({"run": plain | {"id": "a"} | more}) for more in ({}, said)])


def test_what_was_replaced_gives_its_room_back(home: Home) -> None:
    fill(home, 300)
    with open_records(home) as opened:
        opened.database.write(lambda one: one.exec_driver_sql("DELETE FROM steps"))
    before = home.records.stat().st_size
    assert "now" in records("vacuum").stdout
    assert home.records.stat().st_size < before
