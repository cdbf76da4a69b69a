"""A server tells what others changed, once the matrix stands still, and tries again what failed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rocwright.follow.notify.ledger import read, write
from rocwright.home import Home
from rocwright.records.read import Records
from rocwright.web import telling
from rocwright.web.health import Health
from rocwright.web.telling import Telling
from tests.follow.notify.receiving import receiving
from tests.web.serving import Served, a_run, until


@contextmanager
def working(served: Served, settle: float) -> Iterator[None]:
    made = Telling(served.site.home, served.site.records, Health(served.site), settle=settle)
    made.start()
    try:
        yield
    finally:
        made.stop()


@pytest.fixture(autouse=True)
def here(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(home.path))
    monkeypatch.setattr(telling, "LOOK_SECONDS", 0.2)


def test_what_others_changed_is_told_and_what_failed_is_tried_again(
    home: Home, records: Records, served: Served
) -> None:
    with receiving() as receiver, working(served, 0.3):
        (home.path / "config.toml").write_text(f'[[notify]]\nname = "room"\nurl = "{receiver.url}"\n')
        until(lambda: read(home) is not None)
        receiver.status = 500
        records.put(a_run(outcome="failed", failure="compile"))
        until(lambda: bool(receiver.posts))
        until(lambda: bool((known := read(home)) and known.told["room"].error))
        receiver.status = 200
        known = read(home)
        assert known is not None
        now = known.told["room"].model_copy(update={"again": "2026-01-01T00:00:00Z"})
        write(home, known.model_copy(update={"told": {"room": now}}))
        until(lambda: len(receiver.posts) == 2)
        until(lambda: bool((known := read(home)) and known.told["room"].last))


def test_nothing_is_told_before_the_matrix_stands_still(home: Home, records: Records, served: Served) -> None:
    """Between a build and its checks nobody knows how a row stands."""
    with working(served, 3):
        until(lambda: read(home) is not None)
        begun = time.monotonic()
        records.put(a_run("20260101T000001.000000Z-000001", outcome="failed", failure="compile"))
        until(lambda: bool((known := read(home)) and known.changes))
        # no matter how slow the machine is: never before
        assert time.monotonic() - begun >= 3
