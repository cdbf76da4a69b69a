"""Fixtures of rocwheel's tests: the command."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from rocwheel_samples.command import Command
from rocwheel_samples.fixtures import (
    no_fixture_reads_the_users_settings,
    no_test_touches_the_users_home,
    nothing_is_left_that_pytest_cannot_remove,
)

__all__ = [
    "no_fixture_reads_the_users_settings",
    "no_test_touches_the_users_home",
    "nothing_is_left_that_pytest_cannot_remove",
]

# A shell has what it starts in the background ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No run fails by chance or by slowness: the same cases are tried each time.
settings.register_profile("rocwheel", deadline=None, derandomize=True)
settings.load_profile("rocwheel")


@pytest.fixture
def rocwheel(tmp_path: Path) -> Command:
    """Run the command as a user does, in an empty folder."""
    folder = tmp_path / "project"
    folder.mkdir()

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rocwheel", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run
