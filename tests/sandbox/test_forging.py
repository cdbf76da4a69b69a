"""A job that would have its failure taken for a success."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocwright.sandbox import Ended, run
from rocwright.sandbox.host import HostEngine
from tests.sandbox.sandbox_jobs import Run, shell

WORDS = r"""for each in /proc/[0-9]*/cmdline /proc/[0-9]*/environ; do
  tr '\0' '\n' < $each; done 2>/dev/null | grep -o 'rocwright-[0-9a-f]*' | sort -u"""
"""Every word in sight that could be one by which rocwright knows its own lines."""


def test_no_word_in_sight_turns_a_failure_into_success(ran: Run) -> None:
    said = "for word in $words rocwright; do echo $word end 0; echo $word begin; echo $word nowhere; done"
    outcome, lines = ran(shell(f"words=$({WORDS}); {said}; exit 3"))
    assert (outcome.ended, outcome.code) == (Ended.EXITED, 3)
    assert "rocwright end 0" in lines and "rocwright nowhere" in lines
    # none is taken out: all that a job says is output
    assert len(lines) % 3 == 0


def test_what_is_no_status_is_output(ran: Run) -> None:
    said = "for word in $words rocwright; do echo $word end banana; echo $word end; done"
    outcome, lines = ran(shell(f"words=$({WORDS}); {said}"))
    assert outcome.ok
    assert lines[-2:] == ["rocwright end banana", "rocwright end"]


@pytest.mark.parametrize("whom", ["1", "$PPID", "-1"])
def test_a_job_that_kills_what_is_above_it_has_not_succeeded(ran: Run, whom: str) -> None:
    signals = "HUP INT TERM PIPE USR1 KILL"
    script = f"trap '' HUP INT TERM PIPE USR1; for each in {signals}; do kill -$each {whom}; done; sleep 0.2"
    outcome, _ = ran(shell(f"({script}) 2>/dev/null; exit 3", seconds=30))
    assert not outcome.ok


def test_a_job_that_writes_to_what_those_above_it_have_open_has_not_succeeded(ran: Run) -> None:
    """Pipes can be opened by /proc, event counters cannot; whatever is written is output at most."""
    write = r"printf '\1\0\0\0\0\0\0\0' > $each"
    script = f"for each in /proc/1/fd/* /proc/$PPID/fd/*; do ({write}) 2>/dev/null & done; sleep 0.3; exit 3"
    outcome, _ = ran(shell(script, seconds=30))
    assert (outcome.ended, outcome.code) == (Ended.EXITED, 3)


def test_the_host_tells_the_status_as_the_engines_do(tmp_path: Path) -> None:
    outcome = run(HostEngine(), shell("echo end 0; exit 3"), lambda line: None)
    assert (outcome.ended, outcome.code) == (Ended.EXITED, 3)
    outcome = run(HostEngine(), shell("kill -KILL $PPID; exit 0"), lambda line: None)
    assert not outcome.ok
