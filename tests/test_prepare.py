"""tools/prepare checks the date of package lists, unless a variable says that it must not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent / "tools/prepare"
PROGRAMS = {"id": "echo 0", "dpkg-query": "exit 1", "dpkg": "", "apt-get": 'echo "$@" >> "$LOG"'}
"""What would change this machine: nothing is installed, and apt-get notes what it is told."""


@pytest.mark.parametrize("expired", ["", "1"])
def test_the_date_of_a_package_list_is_checked_unless_the_user_says_otherwise(
    tmp_path: Path, expired: str
) -> None:
    for name, code in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{code}\n")
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(tmp_path / "log")}
    env |= {"ROCWRIGHT_EXPIRED_LISTS": expired} if expired else {}
    done = subprocess.run([TOOL], env=env, capture_output=True, text=True, check=True)
    update, install = (tmp_path / "log").read_text().splitlines()
    assert update.endswith("update -q") and "install" in install
    assert ("Valid-Until" in update + install) is bool(expired)
    assert ("taking package lists past their date" in done.stdout) is bool(expired)
