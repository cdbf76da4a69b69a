"""Every file of tests is collected: a folder that pytest passes over looks green from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = (ROOT / "tests", ROOT / "packages/rocwheel/tests")


def test_every_file_of_tests_on_disk_contributes_a_test() -> None:
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    words += ["-c", str(ROOT / "pyproject.toml"), *map(str, TESTS)]
    # a worker of xdist tells its children that they are one
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:]
    collected = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    on_disk = {str(path.relative_to(ROOT)) for tests in TESTS for path in tests.rglob("test_*.py")}
    assert on_disk <= collected, sorted(on_disk - collected)
