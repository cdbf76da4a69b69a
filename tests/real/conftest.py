"""What the tests on real things share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rocwright.home import Home


@pytest.fixture(scope="session")
def sources_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Where fetched sources are kept: for this run, or in $ROCWRIGHT_TEST_HOME for later ones too."""
    named = os.environ.get("ROCWRIGHT_TEST_HOME")
    return Home(Path(named) if named else tmp_path_factory.mktemp("sources"))
