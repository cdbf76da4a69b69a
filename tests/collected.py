"""Files of tests that pytest passed over: a folder that is not collected looks green from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

PASSED_OVER = pytest.StashKey[list[str]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Remember the files below the arguments without a test, before `-m` and `-k` leave tests out."""
    folders = [config.invocation_params.dir / argument for argument in config.args]
    on_disk = {path for folder in folders if folder.is_dir() for path in folder.rglob("test_*.py")}
    session.stash[PASSED_OVER] = sorted(map(str, on_disk - {item.path for item in items}))


def passed_over(session: pytest.Session) -> list[Path]:
    """Return the files below the arguments of this run that contributed no test."""
    return [Path(name) for name in session.stash[PASSED_OVER]]
