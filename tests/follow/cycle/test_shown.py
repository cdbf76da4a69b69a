"""What a lock has shown: rows of the database that contradict each other show and promote nothing."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

import pytest
from tests.cli.test_promote import put
from tests.making import lock_of
from tests.provenance.test_signing import PURE, note, place, recorded

from rocbase.files.atomic import sha256_bytes
from rocwright.follow.cycle.shown import failed_here, promotions_of, shown
from rocwright.home import Home
from rocwright.records.model import Promotion
from rocwright.records.opening import open_records

LOCK = lock_of("gfx-smoke", "gfx1151", base="debian:sid")
CELL = {"stack": "gfx-smoke", "gpu": "gfx1151", "base": "debian:sid", "variant": ""}


@pytest.fixture
def seen(home: Home) -> Home:
    """A home with a lock that ran in software, on record."""
    put(home, LOCK, "run-1", command="verify", outcome="verified", said="ran in software")
    return home


def change(home: Home, statement: str) -> None:
    """Change the database behind everybody's back."""
    with sqlite3.connect(home.records) as connection:
        assert connection.execute(statement).rowcount == 1
    connection.close()


def says(home: Home) -> str:
    with open_records(home) as records:
        return shown(records, records.runs())[1].said


def test_what_agrees_is_evidence(seen: Home) -> None:
    assert says(seen) == "ran in software"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runs SET said = 'ran on a GPU'",
        "UPDATE runs SET outcome = 'failed'",
        "UPDATE runs SET device = 'gfx1151'",
        "UPDATE findings SET ok = 0",
        "UPDATE findings SET device = 'gfx1151'",
        "UPDATE findings SET absent = 1",
        "DELETE FROM findings",
    ],
)
def test_a_damaged_row_makes_no_evidence(seen: Home, statement: str) -> None:
    change(seen, statement)
    assert says(seen) == ""


def test_a_failed_check_that_became_right_makes_no_evidence(home: Home) -> None:
    put(home, LOCK, "run-1", command="verify", outcome="failed")
    change(home, "UPDATE runs SET outcome = 'verified', said = 'ran on a GPU'")
    assert says(home) == ""


def test_a_lock_that_is_damaged_is_not_on_record(seen: Home) -> None:
    text = LOCK.model_dump_json(by_alias=True)
    with open_records(seen) as records:
        assert records.lock(sha256_bytes(text.encode())) == text
    with sqlite3.connect(seen.records) as connection:
        packed = zlib.compress(text.replace("0.1.0", "0.1.1").encode())
        connection.execute("UPDATE locks SET packed = ?", (packed,))
    connection.close()
    with open_records(seen) as records:
        assert records.lock(sha256_bytes(text.encode())) is None


@pytest.mark.parametrize(
    "statement", ["UPDATE promotions SET at = '2001-01-01T00:00:00Z'", "UPDATE promotions SET run = 'run-0'"]
)
def test_a_promotion_that_the_matrix_tells_otherwise_is_none(seen: Home, statement: str) -> None:
    told = Promotion(**CELL, channel="nightly", run="run-1", lock="x", at="2026-01-01T00:00:00Z")
    with open_records(seen) as records:
        records.promote(told)
        assert promotions_of(records, **CELL) == [told]
    change(seen, statement)
    with open_records(seen) as records:
        assert promotions_of(records, **CELL) == []


def test_what_failed_here_is_not_promoted_whatever_the_records_say(home: Home, tmp_path: Path) -> None:
    work = place(home, tmp_path, recorded(PURE))
    assert failed_here(work.project, work.lock) == ""
    note(work, ok=False)
    assert failed_here(work.project, work.lock) == "checks failed here: alpha: runs"
    note(work, ok=True)
    assert failed_here(work.project, work.lock) == ""
