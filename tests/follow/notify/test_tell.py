"""What commands call: what they change is told, from the first command on, and nothing stops them for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.follow.notify.conftest import Machine
from tests.follow.notify.receiving import Receiver

from rocwright.follow.notify import tell
from rocwright.follow.notify.ledger import read
from rocwright.follow.notify.tell import changes_told, tell_now
from rocwright.home import Home

ROW = "tiny_gfx803_sid"


@pytest.fixture
def fresh(here: Home, receiver: Receiver) -> Machine:
    """A machine whose settings have just named somebody."""
    made = Machine(here, receiver)
    made.settings()
    made.run("failed", stack="old")
    return made


def test_the_first_command_tells_what_it_changed_and_not_what_was_there(fresh: Machine) -> None:
    said: list[str] = []
    with changes_told(fresh.home, said.append):
        fresh.run("failed")
    assert fresh.receiver.titles == [f"rocwright: broken: {ROW}"]
    assert said == []


def test_who_is_named_later_is_told_what_changes_from_then_on(fresh: Machine) -> None:
    with changes_told(fresh.home, print):
        fresh.run("failed")
    table = f'[[notify]]\nurl = "{fresh.receiver.url}"\n'
    fresh.settings(f'{table}name = "room"\n{table}name = "later"\n')
    with changes_told(fresh.home, print):
        fresh.run("built")
    assert sorted(fresh.receiver.titles) == sorted(
        [f"rocwright: broken: {ROW}", *[f"rocwright: passes again: {ROW}"] * 2]
    )


def test_a_command_that_raises_raises_the_same_after_it_told(fresh: Machine) -> None:
    def command() -> None:
        with changes_told(fresh.home, print):
            fresh.run("failed")
            raise SystemExit(6)

    with pytest.raises(SystemExit) as ended:
        command()
    assert ended.value.code == 6
    assert len(fresh.receiver.posts) == 1


def test_who_stops_a_command_does_not_wait_for_a_delivery(
    fresh: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh.look(note=True)

    def command() -> None:
        with changes_told(fresh.home, print):
            fresh.run("failed")
            raise KeyboardInterrupt

    monkeypatch.setattr(tell, "tell_now", None)
    with pytest.raises(KeyboardInterrupt):
        command()
    assert fresh.receiver.asked.wait(30)


def test_settings_that_cannot_be_read_stop_nothing(fresh: Machine) -> None:
    (fresh.home.path / "config.toml").write_text("[[notify]]\n")
    said: list[str] = []
    with changes_told(fresh.home, said.append):
        pass
    [line] = said
    assert line.startswith("changes are not told: ")


def test_a_ledger_that_cannot_be_written_stops_nothing_and_nothing_is_sent(
    fresh: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh.look(note=True)
    fresh.home.notices.unlink()
    fresh.home.notices.mkdir()
    (fresh.home.notices / "in-the-way").touch()
    fresh.run("failed")
    said: list[str] = []
    tell_now(fresh.home, said.append)
    assert said == ["changes could not be told: rocwright notify now says why"]
    assert fresh.receiver.posts == []


def test_a_ledger_that_is_damaged_is_begun_anew(fresh: Machine, tmp_path: Path) -> None:
    fresh.home.notices.write_text("{")
    fresh.look()
    assert read(fresh.home) is not None
    assert fresh.receiver.posts == []
