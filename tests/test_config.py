"""The settings of this machine: which store it has. Mirrors and records have tests of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwright import api
from rocwright.config import Cycles, config, config_file, store_of
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
    say("ftp://bucket")
    with pytest.raises(InputError, match="unsupported store URL: ftp://") as caught:
        store_of(here)
    assert str(config_file()) in caught.value.detail


# who is told


def refusal(text: str) -> str:
    """Why config.toml is refused."""
    config_file().write_text(text)
    with pytest.raises(InputError) as caught:
        config()
    return caught.value.cause


def test_a_destination_is_called_as_it_says_else_by_where_its_address_lies_never_by_a_part_of_it(
    here: Home,
) -> None:
    config_file().write_text(
        '[[notify]]\nname = "lab"\nurl = "json://swordfish"\n'
        '[[notify]]\nurl_env = "ROOM"\n'
        '[[notify]]\nurl_file = "~/secrets/phone.url"\n'
        '[[notify]]\nurl = "slack://swordfish/x"\n'
        '[[notify]]\nurl = "swordfish:x"\n'
    )
    found = config()
    assert [one.called for one in found.notify] == ["lab", "ROOM", "phone", "slack", "url"]
    assert "swordfish" not in f"{found!r} {found} {found.model_dump_json()}"


def test_two_destinations_of_one_name_or_with_two_addresses_or_none_are_refused(here: Home) -> None:
    table = '[[notify]]\nurl = "json://a"\n'
    assert "two [[notify]] tables are called json: give each a name" in refusal(table * 2)
    for wrong in ('[[notify]]\nname = "x"\n', f'{table}url_env = "X"\n'):
        assert "exactly one of url, url_env and url_file must be given" in refusal(wrong)
    assert "notify.0.on.0" in refusal(f'{table}on = ["brokn"]\n')


def test_cycles_are_overdue_after_twice_their_interval_unless_the_settings_say_when(here: Home) -> None:
    assert Cycles().limit() == 0
    assert Cycles().limit(every=6) == 12
    assert Cycles(every=24).limit(every=6) == 48
    assert Cycles(every=24, overdue=30).limit() == 30
