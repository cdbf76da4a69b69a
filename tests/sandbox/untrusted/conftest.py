"""A hang is a failure, and nothing is left that pytest cannot remove."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocwheel_samples.hostile_files import soon
from rocwright.sandbox.untrusted import Untrusted


@pytest.fixture(autouse=True)
def nothing_hangs_or_stays(tmp_path: Path) -> Iterator[None]:
    try:
        with soon():
            yield
    finally:
        subprocess.run(["/bin/rm", "-rf", *tmp_path.iterdir()], check=False)


@pytest.fixture
def left(tmp_path: Path) -> Untrusted:
    """A folder that the step torch could write; beside it lies a file that it could not."""
    (tmp_path / "left").mkdir()
    (tmp_path / "secret").write_text("outside")
    return Untrusted(tmp_path / "left", "torch")
