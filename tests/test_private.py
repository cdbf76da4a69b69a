"""The home folder, the records, tokens and keys are their owner's alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rocwright.home import Home
from rocwright.records.opening import open_records
from rocwright.store.signing.keys import chosen, folder, make_key, own_public_key
from rocwright.web.access import Tokens
from tests.conftest import Command


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture(autouse=True)
def open_to_all() -> None:
    os.umask(0o022)


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that is named, and is not there yet."""
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tmp_path / "a/home"))
    return tmp_path / "a/home"


def test_a_home_is_made_for_its_owner_alone(named: Path) -> None:
    home = Home.default()
    open_records(home).close()
    Tokens(home.tokens).add("me", ["run"])
    assert mode(named) == 0o700
    assert mode(home.records) == 0o600
    assert mode(home.tokens) == 0o600


def test_a_home_of_before_is_closed_when_it_is_used(named: Path) -> None:
    named.mkdir(mode=0o755, parents=True)
    for name in ("records.sqlite", "records.sqlite-wal", "tokens.json"):
        (named / name).touch(0o644)
    Home.default()
    assert mode(named) == 0o700
    assert {mode(path) for path in named.iterdir()} == {0o600}


def test_the_companions_of_the_records_are_as_closed(named: Path) -> None:
    records = open_records(Home.default())
    there = [named / f"records.sqlite{suffix}" for suffix in ("", "-wal", "-shm")]
    assert [mode(path) for path in there] == [0o600] * 3
    records.close()


def test_a_command_closes_it(rocwright: Command, home: Home) -> None:
    home.path.chmod(0o755)
    assert rocwright("store", "ls").returncode == 0
    assert mode(home.path) == 0o700


def test_a_folder_of_everybodys_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tmp_path / "tmp"))
    Home.default()
    assert mode(tmp_path / "tmp") == 0o1777
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tmp_path))
    tmp_path.chmod(0o755)
    Home.default()
    assert mode(tmp_path) == 0o755


def test_what_a_link_leads_to_stays_as_it_is(named: Path, tmp_path: Path) -> None:
    named.mkdir(parents=True)
    (tmp_path / "other").touch(0o644)
    (named / "tokens.json").symlink_to(tmp_path / "other")
    Home.default()
    assert mode(tmp_path / "other") == 0o644


# the key to sign with


def test_the_key_is_made_in_the_home_that_is_named(named: Path) -> None:
    made = make_key()
    assert (made.private, made.public) == (named / "attest.key", named / "attest.pub")
    assert mode(made.private) == 0o600
    assert chosen() == made.private


def test_a_key_that_was_made_among_the_settings_is_still_found(
    named: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROCWRIGHT_HOME")
    made = make_key()
    assert made.private == tmp_path / "config/rocwright/attest.key"
    monkeypatch.setenv("ROCWRIGHT_HOME", str(named))
    assert (chosen(), own_public_key()) == (made.private, made.public)
    assert folder() == named
