"""A catalog that is checked within moments."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rocwright.catalog.folders import DATA


@pytest.fixture(scope="session")
def few_issues(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The carried catalog with one file of known failures: all of them take most of a check's time."""
    folder = tmp_path_factory.mktemp("few") / "catalog"
    shutil.copytree(DATA, folder, ignore=shutil.ignore_patterns("issues", "watchlist.toml"))
    (folder / "issues").mkdir()
    shutil.copy(DATA / "issues" / "cmake.toml", folder / "issues")
    (folder / "watchlist.toml").write_text("")
    return folder
