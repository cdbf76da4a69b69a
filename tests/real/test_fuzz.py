"""Every reader of strangers' files, fuzzed for a few seconds; `python -m tests.fuzz` does it for longer."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fuzz.targets import TARGETS

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed"),
]

SECONDS = 1


def test_no_bytes_bring_out_anything_but_an_answer(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "each", str(SECONDS), tmp_path],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    # exceptions are printed on stdout
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-1000:]}"
    assert done.stderr.count("Done ") == len(TARGETS)
