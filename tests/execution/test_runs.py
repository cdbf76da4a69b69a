"""A run from its begin to its end on record, and the log of each step."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.making import lock_of

from rocbase.errors import InputError, InterruptedByUser
from rocwright.execution.runs import LogFile, UnderWay, find_log, log_name, parse_line
from rocwright.home import Home
from rocwright.plan.resolve.model import Request
from rocwright.records.model import Run, StepRun, new_run_id
from rocwright.records.opening import read_records

REQUEST = Request(stack="s", gpu=("gfx1151",), base="debian:sid")


def put(home: Home, number: int, **outcomes: str) -> Run:
    """A run whose steps ended so, with a log each."""
    with UnderWay("build", REQUEST, home, pytest.fail) as under_way:
        for name, outcome in outcomes.items():
            under_way.note(StepRun(name=name.replace("_", "/"), key="k", outcome=outcome, log=f"{name}.log"))
            LogFile(under_way.folder / f"{name}.log").close()
            (under_way.folder / f"{name}.log").write_text(f"{name} of {number}\n")
        return under_way.ended("failed" if "failed" in outcomes.values() else "built")


def on_record(home: Home) -> list[Run]:
    with read_records(home) as records:
        return records.runs()


def test_a_run_is_on_record_with_its_steps_as_they_ended(home: Home) -> None:
    made = put(home, 1, source_torch="built", torch="failed")
    (told,) = on_record(home)
    assert told.model_copy(update={"number": 0}) == made
    assert [one.name for one in told.steps] == ["source/torch", "torch"]


def test_a_run_that_is_killed_has_left_its_lock(home: Home) -> None:
    locked = lock_of("gfx-smoke")
    under_way = UnderWay("build", locked.request, home, pytest.fail, lock=locked)
    under_way.note(StepRun(name="one", key="k", outcome="", state="running"))
    end = time.monotonic() + 60
    while not (there := on_record(home)) and time.monotonic() < end:
        time.sleep(0.01)
    with read_records(home) as records:
        assert records.lock(there[0].lock) == locked.model_dump_json(by_alias=True)


def test_a_run_that_did_nothing_leaves_nothing(home: Home) -> None:
    with UnderWay("build", REQUEST, home, pytest.fail) as under_way:
        under_way.ended("built", 7)
    assert list(home.path.iterdir()) == []


def test_a_run_that_somebody_waits_for_is_on_record_even_so(home: Home) -> None:
    with UnderWay("build", REQUEST, home, pytest.fail, run_id="mine", origin="cycle 1") as under_way:
        under_way.ended("built", 7)
    assert [(one.id, one.cached, one.origin) for one in on_record(home)] == [("mine", 7, "cycle 1")]


def test_ctrl_c_ends_the_run_and_what_had_not_ended(home: Home) -> None:
    queued = StepRun(name="two", key="k", outcome="", state="queued")
    running = StepRun(name="one", key="k", outcome="", state="running")
    with pytest.raises(InterruptedByUser), UnderWay("build", REQUEST, home, pytest.fail) as under_way:
        under_way.note(queued)
        under_way.note(running)
        raise InterruptedByUser("stopped")
    (told,) = on_record(home)
    assert (told.state, told.outcome) == ("ended", "stopped")
    assert {one.name: one.outcome for one in told.steps} == {"two": "skipped", "one": "stopped"}


def test_a_step_that_begins_anew_is_another_one(home: Home) -> None:
    with UnderWay("build", REQUEST, home, pytest.fail) as under_way:
        for state, outcome in (("running", ""), ("ended", "failed"), ("running", ""), ("ended", "built")):
            under_way.note(
                StepRun.model_validate({"name": "a", "key": "k", "outcome": outcome, "state": state})
            )
        under_way.ended("built")
    (told,) = on_record(home)
    assert [one.outcome for one in told.steps] == ["failed", "built"]


def test_ids_of_runs_are_unique_and_sort_by_time() -> None:
    made = [new_run_id() for _ in range(50)]
    assert len(set(made)) == 50
    assert made[0][:16] <= made[-1][:16]


def test_the_newest_log_of_a_step_is_found(home: Home) -> None:
    put(home, 1, torch="failed", triton="built")
    put(home, 2, triton="built")
    assert find_log(home, "torch").read_text() == "torch of 1\n"
    assert find_log(home, "triton").read_text() == "triton of 2\n"


def test_without_a_name_the_newest_failure_is_found_before_what_went_well(home: Home) -> None:
    put(home, 1, triton="built", torch="failed", vision="skipped")
    assert find_log(home, None).read_text() == "torch of 1\n"


def test_a_step_without_log_is_told_with_those_that_have_one(home: Home) -> None:
    put(home, 1, triton="built")
    with pytest.raises(InputError, match="torch") as caught:
        find_log(home, "torch")
    assert "triton" in caught.value.cause


def test_the_name_of_a_log_is_no_path() -> None:
    assert log_name("source/torch") == "source-torch.log"


def test_a_log_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "x" / "torch.log")
    log.line("first \ud800 line")
    assert (tmp_path / "x" / "torch.log").read_text().endswith("Z first ? line\n")
    log.close()


@pytest.mark.parametrize("again", [False, True])
def test_a_log_without_end_keeps_its_begin_and_end_and_counts_the_rest(tmp_path: Path, again: bool) -> None:
    path, lines = tmp_path / "torch.log", [f"{number}".rjust(24) for number in range(1000)]
    log = LogFile(path, begin=1000, end=5000)
    for line in lines:
        if again and line == lines[700]:
            log.close()
            log = LogFile(path, begin=1000, end=5000)
        log.line(line)
        assert path.stat().st_size <= 6000
    log.close()
    texts = [parse_line(line)[1] for line in path.read_text().splitlines()]
    (count,) = (text for text in texts if "left out" in text)
    at, left_out = texts.index(count), len(lines) - len(texts) + 1
    assert texts[:at] == lines[:at] and at == 21
    assert texts[at + 1 :] == lines[at + left_out :] and len(texts) > 60
    assert count == f"({left_out} lines, {50 * left_out} bytes left out)"
