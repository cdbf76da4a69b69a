"""The record of every run, and the log of each step."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocwright.build.runs import (
    LogFile,
    Run,
    StepRun,
    find_log,
    log_name,
    new_run_id,
    read_report,
    runs,
    save_run,
)
from rocwright.errors import InputError


def put(folder: Path, number: int, **outcomes: str) -> Run:
    """A run whose steps ended so, with a log each."""
    steps = tuple(
        StepRun(name=name.replace("_", "/"), key="k", outcome=outcome, log=f"{name}.log")
        for name, outcome in outcomes.items()
    )
    run = Run(
        id=f"20250101T00000{number}Z-x", command="build", started="s", seconds=1, stack="s", gpu=("g",),
        base="b", outcome="built", steps=steps,
    )  # fmt: skip
    save_run(folder, run)
    for step in steps:
        (folder / run.id / step.log).write_text(f"{step.name} of {number}\n")
    return run


def test_runs_are_told_newest_first(tmp_path: Path) -> None:
    made = [put(tmp_path, number, torch="built") for number in (1, 2, 3)]
    assert list(runs(tmp_path)) == made[::-1]


def test_a_record_that_a_kill_cut_short_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path, 1, torch="built")
    broken = put(tmp_path, 2, torch="built")
    path = tmp_path / broken.id / "run.json"
    path.write_text(path.read_text()[:40])
    assert [run.id for run in runs(tmp_path)] == ["20250101T000001Z-x"]


def test_ids_of_runs_are_unique_and_sort_by_time() -> None:
    made = [new_run_id() for _ in range(50)]
    assert len(set(made)) == 50
    assert made[0][:16] <= made[-1][:16]


def test_the_newest_log_of_a_step_is_found(tmp_path: Path) -> None:
    put(tmp_path, 1, torch="failed", triton="built")
    put(tmp_path, 2, triton="built")
    assert find_log(tmp_path, "torch").read_text() == "torch of 1\n"
    assert find_log(tmp_path, "triton").read_text() == "triton of 2\n"


def test_without_a_name_the_newest_failure_is_found_before_what_went_well(tmp_path: Path) -> None:
    put(tmp_path, 1, triton="built", torch="failed", vision="skipped")
    assert find_log(tmp_path, None).read_text() == "torch of 1\n"


def test_a_step_without_log_is_told_with_those_that_have_one(tmp_path: Path) -> None:
    put(tmp_path, 1, triton="built")
    with pytest.raises(InputError, match="torch") as caught:
        find_log(tmp_path, "torch")
    assert "triton" in caught.value.cause


def test_the_name_of_a_log_is_no_path() -> None:
    assert log_name("source/torch") == "source-torch.log"


def test_a_log_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "x" / "torch.log")
    log.line("first \ud800 line")
    assert (tmp_path / "x" / "torch.log").read_text().endswith("Z first ? line\n")
    log.close()


@pytest.mark.parametrize("text", [None, "", "[]", "{", '"x"'])
def test_a_report_that_was_not_finished_says_nothing(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "report.json").write_text(text)
    assert read_report(tmp_path / "report.json") == {}
