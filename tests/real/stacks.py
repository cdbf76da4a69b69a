"""Running the command as a user does, for the tests that build whole stacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rocwright.home import Home


def rocwright(home: Home, folder: Path, *words: str, check: bool = True) -> str:
    """Run the command as a user does; gives its standard output."""
    done = subprocess.run(
        [sys.executable, "-m", "rocwright", *words],
        cwd=folder,
        env=os.environ | {"ROCWRIGHT_HOME": str(home.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, done.stderr[-4000:] + done.stdout[-2000:]
    return done.stdout


def build_and_verify(home: Home, folder: Path, stack: str, gpus: str) -> dict[str, Any]:
    folder.mkdir()
    rocwright(home, folder, "init", "--stack", stack, "--gpu", gpus)
    rocwright(home, folder, "lock")
    built: dict[str, Any] = json.loads(rocwright(home, folder, "build", "--verify", "--json"))
    return built
