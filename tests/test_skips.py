"""A test that is skipped is named with its reason, and one that nobody foresaw fails the run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.skips import EXPECTED, Expected, expected

CONFTEST = """
from tests.skips import pytest_collectreport, pytest_runtest_logreport
from tests.skips import pytest_sessionfinish, pytest_terminal_summary
"""
FORESEEN = "import pytest\ndef test_it(): pytest.skip('pwsh is not installed')\n"
NOT_FORESEEN = "import pytest\ndef test_it(): pytest.skip('the moon is full')\n"
WHOLE_FILE = "import pytest\npytest.skip('the moon is full', allow_module_level=True)\ndef test_it(): pass\n"


def run(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "tests/export").mkdir(parents=True)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "tests/export/test_shells.py").write_text(text)
    (folder / "tests" / "test_other.py").write_text("def test_that_passes(): pass\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    env |= {"PYTHONPATH": str(EXPECTED.parents[1])}
    argv = [sys.executable, "-m", "pytest", f"--basetemp={folder}/temporary", *words]
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("words", [(), ("-n", "2")])
@pytest.mark.parametrize("text", [NOT_FORESEEN, WHOLE_FILE])
def test_a_skip_that_nobody_foresaw_fails_the_run_and_is_named(
    tmp_path: Path, text: str, words: tuple[str, ...]
) -> None:
    done = run(tmp_path, text, *words)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    [line] = [line for line in done.stdout.splitlines() if line.startswith("UNEXPECTED")]
    assert "tests/export/test_shells.py" in line and "the moon is full" in line


@pytest.mark.parametrize("words", [(), ("-n", "2")])
def test_one_that_is_foreseen_does_not_and_is_named_too(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run(tmp_path, FORESEEN, *words)
    assert done.returncode == pytest.ExitCode.OK, done.stdout
    assert "expected    tests/export/test_shells.py::test_it: pwsh is not installed" in done.stdout


def test_each_that_is_foreseen_says_why() -> None:
    for one in expected():
        assert one.why and one.reason and one.test
        assert not one.covers("tests/test_x.py::test_y", "the moon is full")


def test_what_is_foreseen_for_a_plain_user_is_not_for_root(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Expected(test="x", reason="root", why="it mounts", user=True)
    for uid, covered in ((0, False), (1000, True)):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        assert one.covers("tests/x.py", "needs root") is covered
