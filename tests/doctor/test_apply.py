"""Only safe commands are run, and only when they are wanted."""

from __future__ import annotations

import os
from pathlib import Path

from rocwright.diagnosis.machine.read import read_leftovers
from rocwright.diagnosis.machine.tree import Tree
from rocwright.doctor.apply import apply
from rocwright.doctor.findings.model import DoctorFinding

SAFE = DoctorFinding(name="a", grade="warning", what="a", remedy="true a 'b c'", safe=True)
UNSAFE = DoctorFinding(name="b", grade="error", what="b", remedy="false")
WELL = DoctorFinding(name="c", grade="ok", what="c", remedy="false", safe=True)


def test_a_safe_command_runs_once_and_no_shell_reads_it() -> None:
    ran: list[list[str]] = []

    def attach(argv: list[str]) -> int:
        ran.append(argv)
        return 0

    done = apply([SAFE, UNSAFE, WELL, SAFE], lambda one: True, attach)
    assert ran == [["true", "a", "b c"]]
    assert [(one.command, one.status) for one in done] == [(SAFE.remedy, 0)]


def test_what_is_not_wanted_is_not_run() -> None:
    def attach(argv: list[str]) -> int:
        raise AssertionError(argv)

    assert [one.status for one in apply([SAFE], lambda one: False, attach)] == [None]


def test_a_command_that_is_not_installed_is_not_run() -> None:
    gone = SAFE.model_copy(update={"remedy": "no-such-program-anywhere"})
    assert [one.status for one in apply([gone], lambda one: True)] == [None]


def test_a_fifo_that_nobody_reads_is_left_over_and_one_that_is_read_is_not(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "stale")
    os.mkfifo(tmp_path / "used")
    (tmp_path / "file").write_text("")
    reader = os.open(tmp_path / "used", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with Tree() as tree:
            assert read_leftovers(tree, str(tmp_path)) == (str(tmp_path / "stale"),)
            assert tree.unread == []
    finally:
        os.close(reader)
