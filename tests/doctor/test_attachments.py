"""What a report for a bug says of versions, and of the last run that failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocbase.errors import CompileError
from rocwright import __version__
from rocwright.doctor.attachments import last_failure, versions
from rocwright.execution.runs import UnderWay
from rocwright.home import Home
from rocwright.plan.resolve.model import Request
from rocwright.records.model import StepRun


def run(home: Home, outcome: str, stack: str = "s") -> None:
    """A run of two steps, of which the second ended so."""
    request = Request(stack=stack, gpu=("gfx1151",), base="debian:sid")
    error = CompileError("it broke", cause="a header is missing", next_step="install it").as_dict()
    with UnderWay("build", request, home, pytest.fail) as under_way:
        under_way.note(StepRun(name="source/torch", key="k", outcome="built"))
        under_way.note(
            StepRun(name="torch", key="k", outcome=outcome, error=error if outcome == "failed" else {})
        )
        under_way.ended(outcome)


def test_the_newest_run_that_failed_is_told_with_its_failed_steps_alone(home: Home) -> None:
    run(home, "failed", "old")
    run(home, "failed", "new")
    run(home, "built", "fine")
    told = last_failure(home)
    assert (told["stack"], told["gpu"], told["base"]) == ("new", ["gfx1151"], "debian:sid")
    [step] = told["failed"]
    assert (step["name"], step["error"]["class"], step["error"]["next"]) == ("torch", "compile", "install it")


def test_where_nothing_failed_nothing_is_told_and_nothing_is_made(tmp_path: Path) -> None:
    assert last_failure(Home(tmp_path / "home")) == {}
    assert not (tmp_path / "home").exists()


def test_records_that_cannot_be_read_are_told_and_do_not_end_the_report(home: Home) -> None:
    run(home, "failed")
    home.records.write_bytes(b"no database" * 1000)
    assert last_failure(home)["unreadable"]["message"]


def test_versions_name_rocwright_and_each_library_that_it_requires() -> None:
    told = versions()
    assert told["rocwright"] == __version__
    assert told["libraries"]["pydantic"][0].isdigit()
    assert "not installed" not in told["libraries"].values()
