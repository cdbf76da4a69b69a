"""`rocwright notify`: a test, what was told, a unit that failed; and the commands that tell by themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.shell_completion import ShellComplete
from tests.conftest import Command
from tests.follow.notify.receiving import Receiver, receiving
from tests.web.serving import a_run

from rocwright.cli import cli
from rocwright.home import Home
from rocwright.records.opening import open_records


@pytest.fixture
def receiver(home: Home) -> Iterator[Receiver]:
    """One that the settings name."""
    with receiving() as receiver:
        text = f'[[notify]]\nname = "room"\nurl = "{receiver.url}"\n'
        (home.path / "config.toml").write_text(text)
        yield receiver


def breaks(home: Home, ident: str = "20260101T000001.000000Z-000001", stack: str = "tiny") -> None:
    with open_records(home) as records:
        records.put(a_run(ident, stack=stack, outcome="failed", failure="compile"))


def test_a_test_message_comes_to_each_destination_or_says_why_not(
    rocwright: Command, receiver: Receiver
) -> None:
    done = rocwright("notify", "test")
    assert (done.returncode, done.stdout) == (0, "room: delivered\n")
    assert receiver.titles == ["rocwright: a test"]
    receiver.status = 404
    bad = rocwright("notify", "test", "room", "--json")
    assert bad.returncode == 10
    assert json.loads(bad.stdout[: bad.stdout.index("]") + 1]) == [
        {"name": "room", "ok": False, "why": "it answered 404"}
    ]
    assert "error[network] the test message did not reach room" in bad.stderr
    assert "rocwright notify test room" in bad.stderr


def test_the_names_of_destinations_are_completed(
    receiver: Receiver, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(home.path))
    completed = ShellComplete(cli, {}, "rocwright", "_ROCWRIGHT_COMPLETE")
    found = completed.get_completions(["notify", "test"], "ro")
    assert [one.value for one in found] == ["room"]


def test_a_destination_that_is_not_there_is_refused_with_those_that_are(
    rocwright: Command, receiver: Receiver, home: Home
) -> None:
    done = rocwright("notify", "test", "rooms")
    assert done.returncode == 2
    assert "there is no destination rooms" in done.stderr
    assert "there are room" in done.stderr
    (home.path / "config.toml").write_text("")
    assert "has no [[notify]] table" in rocwright("notify", "test").stderr


def test_the_status_says_what_was_told_last_and_what_waits(
    rocwright: Command, receiver: Receiver, home: Home
) -> None:
    assert "nothing yet" in rocwright("notify", "status").stdout
    rocwright("notify", "now")
    breaks(home)
    rocwright("notify", "now")
    assert "broken: tiny_gfx1151_debian-sid" in rocwright("notify", "status").stdout
    receiver.status = 500
    breaks(home, "20260101T000002.000000Z-000002", "other")
    done = rocwright("notify", "now")
    assert done.returncode == 0
    assert "not told: room: it answered 500; tried again after" in done.stderr
    assert "1: it answered 500; tried again after" in rocwright("notify", "status").stdout
    [told] = json.loads(rocwright("notify", "status", "--json").stdout)["destinations"]
    assert told["last"]["subject"] == "tiny_gfx1151_debian-sid"
    assert [one["subject"] for one in told["waiting"]] == ["other_gfx1151_debian-sid"]


def test_a_unit_that_failed_is_told_once(rocwright: Command, receiver: Receiver) -> None:
    for _ in range(3):
        assert rocwright("notify", "failed", "rocwright-cycle@tmp.service").returncode == 0
    [post] = receiver.posts
    assert post["title"] == "rocwright: a person must decide: rocwright-cycle@tmp.service"


def test_a_unit_that_failed_before_all_else_is_told_alone(
    rocwright: Command, receiver: Receiver, home: Home
) -> None:
    breaks(home)
    rocwright("notify", "failed", "rocwright-cycle@tmp.service")
    rocwright("notify", "now")
    assert receiver.titles == ["rocwright: a person must decide: rocwright-cycle@tmp.service"]


def test_a_command_tells_what_changed_and_what_stood_before_is_known(
    rocwright: Command, receiver: Receiver, home: Home
) -> None:
    breaks(home)
    rocwright("promote")
    assert receiver.posts == []
    breaks(home, "20260101T000002.000000Z-000002", "other")
    done = rocwright("promote")
    assert done.returncode == 0
    assert receiver.titles == ["rocwright: broken: other_gfx1151_debian-sid"]


def test_a_delivery_that_fails_fails_no_command_and_is_said(
    rocwright: Command, receiver: Receiver, home: Home
) -> None:
    rocwright("promote")
    breaks(home)
    receiver.status = 500
    done = rocwright("promote", "--json")
    assert done.returncode == 0
    json.loads(done.stdout)
    assert "not told: room: it answered 500" in done.stderr


def test_a_command_that_fails_tells_what_it_changed_all_the_same(
    rocwright: Command, receiver: Receiver, home: Home
) -> None:
    rocwright("promote")
    breaks(home)
    assert rocwright("promote", "no-such-row").returncode == 2
    assert len(receiver.posts) == 1


def test_nothing_is_kept_where_nobody_is_to_be_told(rocwright: Command, home: Home) -> None:
    breaks(home)
    rocwright("promote")
    assert not home.notices.exists()
