"""Files of tests that pytest passed over: a folder that is not collected looks green from outside."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

PASSED_OVER = pytest.StashKey[list[str]]()
UNNAMED = pytest.StashKey[list[str]]()
SOUGHT = {"real and not nightly": "mark.real", "nightly": "mark.real", "timing": "mark.timing"}
"""What a file of tests contains if `-m EXPRESSION` runs any of them."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test for `-m`: to import them takes every process seconds and 250 MB."""
    text = SOUGHT.get(config.option.markexpr, "")
    if text and collection_path.match("test_*.py") and text not in _text_of(collection_path):
        return True
    return None


@cache
def _text_of(path: Path) -> str:
    """Return a file of tests with the conftest.py beside it, which may mark its parameters."""
    files = (path, path.with_name("conftest.py"))
    return "".join(file.read_text() for file in files if file.exists())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Remember the files below the arguments without a test, before `-m` and `-k` leave tests out."""
    folders = [config.invocation_params.dir / argument for argument in config.args]
    on_disk = {path for folder in folders if folder.is_dir() for path in folder.rglob("test_*.py")}
    session.stash[PASSED_OVER] = sorted(map(str, on_disk - {item.path for item in items}))
    session.stash[UNNAMED] = sorted({item.nodeid for item in items if not _is_named(item)})


def _is_named(item: pytest.Item) -> bool:
    """Tell whether `make real`, `make nightly` and `make flaky` find a test by the text of its file."""
    names = {marker.name for marker in item.iter_markers()}
    missing = {name for name in names & {"real", "timing"} if f"mark.{name}" not in _text_of(item.path)}
    return not missing and ("nightly" not in names or "real" in names)


def passed_over(session: pytest.Session) -> list[Path]:
    """Return the files below the arguments of this run that contributed no test."""
    return [Path(name) for name in session.stash[PASSED_OVER]]


def unnamed(session: pytest.Session) -> list[str]:
    """Return the real, nightly and timing tests that `pytest_ignore_collect` would lose."""
    return session.stash[UNNAMED]
