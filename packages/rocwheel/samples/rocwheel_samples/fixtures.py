"""Fixtures that every test runs with, here and in rocwright: a conftest.py imports them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rocbase.folders.removal import remove_tree
from rocwheel_samples import hostile_files

__all__ = [
    "no_fixture_reads_the_users_settings",
    "no_test_touches_the_users_home",
    "nothing_is_left_that_pytest_cannot_remove",
]


@pytest.fixture(scope="session", autouse=True)
def no_fixture_reads_the_users_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide the user's settings from fixtures of modules: a signing key there would sign their builds."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(autouse=True)
def no_test_touches_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    # whoever runs the tests, or pytest-xdist, may tell of a terminal: what is read in tests is of any width
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(autouse=True)
def nothing_is_left_that_pytest_cannot_remove() -> Iterator[None]:
    yield
    while hostile_files.deep:
        remove_tree(hostile_files.deep.pop())
