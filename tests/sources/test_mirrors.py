"""Mirrors say where something is had, and never what it is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.conftest import Index, Repository, make_repository

from rocbase.errors import InputError, NetworkError
from rocwheel_samples.tables import each
from rocwright.config import config_file
from rocwright.model.steps import GitOrigin
from rocwright.sources.git import pack_commit, resolve_tag
from rocwright.sources.index import find_sdist
from rocwright.sources.mirrors import Mirrors, mirrors
from rocwright.store.local import LocalStore

UPSTREAM = "https://git.example/"


def test_an_address_that_no_mirror_knows_stays_as_it_is() -> None:
    assert Mirrors({}).at("https://git.example/x") == "https://git.example/x"
    assert Mirrors({"https://other.example/": "/srv/"}).at("https://git.example/x") == "https://git.example/x"


def test_the_longest_prefix_wins() -> None:
    table = Mirrors(
        {"https://git.example/": "/srv/git/", "https://git.example/big/": "https://near.example/"}
    )
    assert table.at("https://git.example/big/x") == "https://near.example/x"
    assert table.at("https://git.example/small/x") == "/srv/git/small/x"


words = st.text("ab/", min_size=1, max_size=4)


@given(st.dictionaries(words, words, max_size=4), words)
def test_a_mirror_changes_one_prefix_and_nothing_after_it(table: dict[str, str], address: str) -> None:
    found = Mirrors(table).at(address)
    told = [table[one] + address[len(one) :] for one in table if address.startswith(one)]
    assert found in (told or [address])


def test_the_config_file_and_the_variable_say_mirrors_and_the_variable_stands_over_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text('[mirrors]\n"a.example/" = "one/"\n"b.example/" = "two/"\n')
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", "b.example/=three/  c.example/=http://four/?x=y")
    found = mirrors()
    assert [found.at(f"{name}.example/x") for name in "abc"] == ["one/x", "three/x", "http://four/?x=yx"]


def test_the_config_file_is_the_users_own_where_no_home_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROCWRIGHT_HOME")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert config_file() == tmp_path / "rocwright" / "config.toml"


@each(
    "text",
    [
        'mirrors = "x"\n',
        '[mirror]\n"a" = "b"\n',
        '[mirrors]\n"a" = ""\n',
        '[mirrors]\n"a" = "--upload-pack=x"\n',
        "x",
    ],
)
def test_a_config_file_that_says_something_else_is_refused_by_name(text: str) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text(text)
    with pytest.raises(InputError, match=r"config\.toml"):
        mirrors()


@pytest.mark.parametrize("text", ["a", "=b", "a=", "a=-b", "-c=b", "a=b c"])
def test_a_variable_that_is_no_list_of_mirrors_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", text)
    with pytest.raises(InputError, match="ROCWRIGHT_MIRRORS"):
        mirrors()


def test_a_commit_comes_from_the_mirror_and_is_pinned_under_its_own_address(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository.git("rev-parse", "HEAD")
    repository.git("tag", "v1")
    direct = pack_commit(GitOrigin(url=repository.url, commit=commit), tmp_path / "direct")
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", f"{UPSTREAM}={repository.path.parent}/")
    url = f"{UPSTREAM}{repository.path.name}"
    assert resolve_tag(url, "v1") == commit
    mirrored = pack_commit(GitOrigin(url=url, commit=commit), tmp_path / "mirrored")
    assert mirrored.sha256 == direct.sha256
    assert mirrored.origin.model_dump()["url"] == url


def test_submodules_come_from_the_mirror_too(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = make_repository(tmp_path / "inner")
    subprocess.run(
        ["git", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.url, "inner"],
        cwd=repository.path,
        check=True,
    )
    repository.git("config", "--file", ".gitmodules", "submodule.inner.url", f"{UPSTREAM}inner")
    commit = repository.commit(".gitmodules", (repository.path / ".gitmodules").read_text())
    with pytest.raises(NetworkError):
        pack_commit(GitOrigin(url=repository.url, commit=commit), tmp_path / "without")
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", f"{UPSTREAM}={tmp_path}/")
    assert pack_commit(GitOrigin(url=repository.url, commit=commit), tmp_path / "with").size


def test_git_settings_of_the_caller_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}
    found = Mirrors({"x": "y"}).for_git(before)
    assert found["GIT_CONFIG_COUNT"] == "2"
    assert (found["GIT_CONFIG_KEY_0"], found["GIT_CONFIG_KEY_1"]) == ("a.b", "url.y.insteadOf")


def test_the_package_index_has_a_mirror(
    index: Index, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.files["hello"] = {"hello-1.0.tar.gz": b"data"}
    url = os.environ["PIP_INDEX_URL"]
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", f"https://index.example/={url.removesuffix('simple')}")
    assert find_sdist("hello", "1.0", store).size == 4
