"""The settings of this machine: which store it has. Mirrors and records have tests of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rocwheel.errors import InputError
from rocwright import api
from rocwright.config import config_file, store_of
from rocwright.execution.disk import places
from rocwright.home import Home
from rocwright.store import SCHEMES
from tests.bucket import BucketStore


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """This machine's home folder."""
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return Home.default()


def say(store: str) -> None:
    config_file().write_text(f'store = "{store}"\n')


def test_the_store_lies_in_the_home_folder_unless_the_settings_name_another(
    here: Home, tmp_path: Path
) -> None:
    assert store_of(here).url == here.store.as_uri()
    for named in (tmp_path / "big", (tmp_path / "big").as_uri()):
        say(str(named))
        assert api.project("gfx-smoke", "RX 580", folder=tmp_path).store.url == (tmp_path / "big").as_uri()
        assert places(here)["the store"] == tmp_path / "big"


def test_a_kind_of_store_is_known_to_projects_and_settings_by_its_scheme_alone(
    here: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwright.store.SCHEMES", {**SCHEMES, "memory": lambda url: BucketStore(tmp_path)})
    say("memory://bucket")
    assert api.project("gfx-smoke", "RX 580", folder=tmp_path).store.url == "memory://bucket"
    assert places(here)["the store"] == here.store


def test_a_second_home_keeps_its_own_store_so_that_a_second_build_finds_nothing_made(
    here: Home, tmp_path: Path
) -> None:
    say(str(tmp_path / "big"))
    project = api.project("gfx-smoke", "RX 580", folder=tmp_path)
    other = replace(project, home=Home(tmp_path / "second"))
    assert other.store.url == (tmp_path / "second/store").as_uri()


def test_a_store_that_nobody_can_open_is_told_with_the_file_that_names_it(here: Home) -> None:
    say("s3://bucket")
    with pytest.raises(InputError, match="unsupported store URL: s3://") as caught:
        store_of(here)
    assert str(config_file()) in caught.value.detail
