"""The tool that repeats tests beside a load."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tools.flaky import Tally, load, run_rounds, table

TESTS = """
import pathlib, pytest
COUNT = pathlib.Path(__file__).with_name("count")

def test_fails_in_the_second_round():
    COUNT.write_text(COUNT.read_text() + "x" if COUNT.exists() else "x")
    assert COUNT.read_text() != "xx"

def test_passes(): pass

@pytest.mark.skip(reason="not here")
def test_is_skipped(): pass
"""


def test_a_failure_in_one_of_three_rounds_is_counted_and_stands_first(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    own = ["-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-c", os.devnull, str(tmp_path)]
    tallies = run_rounds(3, [sys.executable, "-m", "pytest", "-q", *own])
    results = {name.rpartition("::")[2]: (tally.runs, tally.failures) for name, tally in tallies.items()}
    assert results == {"test_fails_in_the_second_round": (3, 1), "test_passes": (3, 0)}
    assert "second_round" in table(tallies).splitlines()[1]
    assert table({"quick": Tally(slowest=1), "slow": Tally(slowest=2)}).splitlines()[1].endswith("slow")


def test_a_pytest_that_cannot_run_ends_it(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run_rounds(1, [sys.executable, "-m", "pytest", "--no-such-option"])


def test_the_load_ends_with_it_and_with_a_tool_that_is_killed() -> None:
    with load(2) as busy:
        assert [process.poll() for process in busy] == [None, None]
    assert [process.returncode for process in busy] == [-signal.SIGKILL] * 2
    script = "from tools.flaky import load\nwith load(2):\n print(flush=True)\n input()"
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    ) as tool:
        assert tool.stdout and tool.stdout.readline() == b"\n"
        children = psutil.Process(tool.pid).children()
        tool.kill()
    assert len(children) == 2
    assert psutil.wait_procs(children, timeout=30)[1] == []
