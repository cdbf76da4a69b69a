"""What of a repeated operation is a finding: the judgement, which needs no torch."""

from __future__ import annotations

from typing import Any

import pytest
from tests.verify import smoke

from rocwheel_samples.tables import each

drift, runner, report, main = (smoke.module(name) for name in ("drift", "runner", "report", "main"))


def outcome(*, differ: int = 0, first: str = "a", state: str = "ok", runs: int = 50, detail: str = "") -> Any:
    more = {"runs": runs, "differ": differ, "results": differ + 1, "first": first}
    more["example"] = "3x5: 1 of 15 values, the first 1 and then 2" if differ else ""
    return runner.Outcome(
        "products", "mm fp32", state, detail, seconds=1.0, more=more if state == "ok" else {}
    )


def raises() -> Any:
    return outcome(state="raises", detail="mm does not have a deterministic implementation")


def test_the_same_bits_in_both_processes_are_right() -> None:
    told = drift.judged(outcome(), outcome(), outcome(runs=1))
    assert (told.state, told.ok) == ("ok", True)
    assert told.detail == "50 runs in each of two processes, the same bits"


def test_what_differs_is_a_finding_with_what_stops_it() -> None:
    told = drift.judged(outcome(differ=12), outcome(), outcome(differ=11))
    assert (told.state, told.ok) == ("drift", False)
    assert "12/50 runs differ without launch blocking, 0/50 with it" in told.detail
    assert "the first 1 and then 2" in told.detail
    assert "HIP_LAUNCH_BLOCKING=1" in told.next_step
    told = drift.judged(outcome(differ=12), outcome(differ=9), outcome())
    assert (told.state, told.ok) == ("apart", True)
    assert "takes it only when asked" in told.detail
    told = drift.judged(outcome(differ=12), outcome(differ=9), outcome(differ=9))
    assert told.cause == "nothing that was tried makes it repeat its bits"


def test_two_processes_that_differ_are_a_finding() -> None:
    told = drift.judged(outcome(first="a"), outcome(first="b"), outcome())
    assert told.state == "drift"
    assert "the two processes differ" in told.detail


@pytest.mark.parametrize("differ", [0, 12])
def test_what_torch_calls_nondeterministic_is_shown_apart_and_is_no_finding(differ: int) -> None:
    told = drift.judged(outcome(differ=differ), outcome(), raises())
    assert (told.state, told.ok) == ("apart", True)
    assert "torch calls it nondeterministic" in told.detail


@each("state", ["error", "crash", "hang", "wrong", "absent", "untried"])
def test_what_did_not_run_in_a_process_is_told_as_that(state: str) -> None:
    assert drift.judged(outcome(state=state, detail="x"), outcome(), outcome()).state == state
    told = drift.judged(outcome(), outcome(state=state, detail="x"), outcome())
    assert (told.state, told.detail) == (state, "with launch blocking: x")


def test_one_of_the_processes_blocks_and_none_inherits_it() -> None:
    free, blocking, exact = drift.passes({"HIP_LAUNCH_BLOCKING": "1", "HOME": "/root"})
    assert free.env == {"HOME": "/root"}
    assert (blocking.env["HIP_LAUNCH_BLOCKING"], blocking.env["CUDA_LAUNCH_BLOCKING"]) == ("1", "1")
    assert "HIP_LAUNCH_BLOCKING" not in exact.env
    assert [one.deterministic for one in (free, blocking, exact)] == [False, False, True]


def test_the_table_has_what_is_not_deterministic_and_no_other() -> None:
    found = [
        ("drift", "gfx803", drift.judged(outcome(differ=3), outcome(), outcome())),
        ("drift", "gfx803", drift.judged(outcome(), outcome(), outcome())),
        ("drift", "gfx803", drift.judged(outcome(differ=2), outcome(differ=2), raises())),
    ]
    lines = drift.table(found)
    assert lines[0] == "not deterministic on gfx803: 1 of 3"
    assert len(lines) == 4
    assert "3/50" in lines[2]
    assert lines[3].endswith("torch calls it nondeterministic")


def test_rows_have_the_counts_of_each_process() -> None:
    row = report.row("drift", "cpu", drift.judged(outcome(differ=3), outcome(), outcome()))
    assert (row["free"], row["blocking"], row["deterministic"]) == ("3/50", "0/50", "0/50")


@each("text", ["1", "0", "-3", "many", "10001"])
def test_a_count_that_compares_nothing_is_refused(text: str) -> None:
    with pytest.raises(SystemExit):
        main.parser().parse_args(["drift", "--repeat", text])
