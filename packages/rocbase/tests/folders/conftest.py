"""A hang is a failure, and nothing is left that pytest cannot remove."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocwheel_samples.hostile_files import soon


@pytest.fixture(autouse=True)
def nothing_hangs_or_stays(tmp_path: Path) -> Iterator[None]:
    try:
        with soon():
            yield
    finally:
        subprocess.run(["/bin/rm", "-rf", *tmp_path.iterdir()], check=False)
