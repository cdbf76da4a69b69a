"""Every file of tests is collected: a folder that pytest passes over looks green from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def test_every_file_of_tests_on_disk_contributes_a_test() -> None:
    words = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", str(TESTS))
    # a worker of xdist tells its children that they are one
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(words, cwd=TESTS.parent, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:]
    collected = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    on_disk = {str(path.relative_to(TESTS.parent)) for path in TESTS.rglob("test_*.py")}
    assert on_disk <= collected, sorted(on_disk - collected)
