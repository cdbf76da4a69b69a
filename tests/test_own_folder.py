"""`make test` leaves no temporary folder behind, whatever a test left in its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEEP = """
import os

def test_it(tmp_path):
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
"""
"""It leaves what a test leaves that was killed before it cleaned up."""


def test_folders_nested_too_deep_for_pytest_go_and_fail_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_deep.py").write_text(DEEP)
    temporary = tmp_path / "t"
    temporary.mkdir()
    done = subprocess.run(
        ["tools/pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", str(tmp_path / "test_deep.py")],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    assert not list(temporary.iterdir())
