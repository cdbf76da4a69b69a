"""The parent of the suites goes on after its child crashed or hung, and names what was under way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.verify import smoke

runner = smoke.module("runner")

CHILD = """\
import json, os, signal, sys, time
order, pipe = json.loads(sys.argv[2]), int(sys.argv[3])
def say(**words):
    os.write(pipe, (json.dumps(words) + "\\n").encode())
cases = order.get("cases")
if not cases:
    print("libdevice: no such thing", flush=True)
    os.kill(os.getpid(), signal.SIGABRT)
say(cases=[[group, name] for group, name, _ in cases])
for place in range(order["start"], len(cases)):
    group, name, what = cases[place]
    say(begin=place)
    if what == "crash":
        print("Memory access fault by GPU node-1", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "hang":
        time.sleep(600)
    if what == "slow":
        time.sleep(0.6)
    say(end=place, seconds=0.1, state="error" if what == "lost" else "ok", detail=f"process {os.getpid()}")
    if what == "lost":
        sys.exit(75)
"""


@pytest.fixture(autouse=True)
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that needs no torch, and does what the order says of each case."""
    path = tmp_path / "child.py"
    path.write_text(CHILD)
    monkeypatch.setattr(runner, "SUITE", path)


def run(*cases: tuple[str, str, str], operation: float = 5.0, group: float = 60.0) -> list[Any]:
    limits = runner.Limits(start=20.0, operation=operation, group=group)
    return list(runner.outcomes({"cases": cases}, limits))


def states(found: list[Any]) -> list[tuple[str, str]]:
    return [(one.name, one.state) for one in found]


def test_a_crash_is_named_by_its_signal_and_the_rest_still_runs() -> None:
    found = run(("a", "one", "ok"), ("a", "two", "crash"), ("a", "three", "ok"), ("b", "four", "ok"))
    assert states(found) == [("one", "ok"), ("two", "crash"), ("three", "ok"), ("four", "ok")]
    assert "SIGSEGV" in found[1].detail
    assert "Memory access fault by GPU node-1" in found[1].detail
    assert "memory that is not its own" in found[1].cause


def test_a_hang_is_ended_and_named_and_the_rest_still_runs() -> None:
    found = run(("a", "one", "hang"), ("a", "two", "ok"), operation=1.5)
    assert states(found) == [("one", "hang"), ("two", "ok")]
    assert "no result within 2 s (the operation's limit)" in found[0].detail


def test_a_device_that_is_lost_gets_a_new_process() -> None:
    found = run(("a", "one", "lost"), ("a", "two", "ok"), ("a", "three", "ok"))
    assert states(found) == [("one", "error"), ("two", "ok"), ("three", "ok")]
    assert found[0].detail != found[1].detail == found[2].detail


def test_a_group_that_keeps_ending_processes_is_left() -> None:
    bad = [("a", f"bad {n}", "crash") for n in range(5)]
    found = run(*bad, ("b", "good", "ok"))
    assert [one.state for one in found] == ["crash"] * 3 + ["untried"] * 2 + ["ok"]
    assert found[3].detail == "3 operations of this group ended their process"


def test_a_group_may_take_only_so_long() -> None:
    slow = [("a", f"slow {n}", "slow") for n in range(9)]
    found = run(*slow, ("b", "good", "ok"), group=1.5)
    found_states = [one.state for one in found]
    assert found_states[0] == "ok"
    assert "hang" in found_states
    assert found_states[-2:] == ["untried", "ok"]


def test_a_process_that_ends_before_it_says_anything_is_told() -> None:
    with pytest.raises(runner.ChildFailedError) as caught:
        runner.described(runner.Limits(start=20.0))
    assert "SIGABRT" in str(caught.value)
    assert "no such thing" in str(caught.value)


def test_no_child_is_left_behind(tmp_path: Path) -> None:
    run(("a", "one", "hang"), operation=0.5)
    script = str(tmp_path / "child.py")
    left = [
        one
        for one in Path("/proc").glob("[0-9]*/cmdline")
        if one.exists() and script in one.read_bytes().decode(errors="replace")
    ]
    assert left == []
