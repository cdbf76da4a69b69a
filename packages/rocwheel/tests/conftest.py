"""Fixtures of rocwheel's tests: a home folder that is never the user's, and the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from rocwheel.folders.removal import remove_tree
from rocwheel.home import Home
from rocwheel_samples.command import Command
from rocwheel_samples.fixtures import (
    no_test_touches_the_users_home,
    nothing_is_left_that_pytest_cannot_remove,
)

__all__ = ["no_test_touches_the_users_home", "nothing_is_left_that_pytest_cannot_remove"]

# A shell has what it starts in the background ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No run fails by chance or by slowness: the same cases are tried each time.
settings.register_profile("rocwheel", deadline=None, derandomize=True)
settings.load_profile("rocwheel")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """The home folder of one test."""
    home = Home(tmp_path / "home")
    home.path.mkdir()
    yield home
    remove_tree(home.path)


@pytest.fixture
def rocwheel(home: Home, tmp_path: Path) -> Command:
    """Run the command as a user does, in an empty folder."""
    folder = tmp_path / "project"
    folder.mkdir()

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rocwheel", *words],
            cwd=folder,
            env=os.environ | {"ROCWRIGHT_HOME": str(home.path)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run
