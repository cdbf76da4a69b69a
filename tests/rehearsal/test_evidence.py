"""What a rehearsal leaves on record: its own word, and nothing of how builds go."""

from __future__ import annotations

from rocwright.execution.runs import UnderWay
from rocwright.home import Home
from rocwright.plan.resolve.model import Request
from rocwright.records.model import REHEARSAL, Finding, StepRun
from rocwright.records.opening import read_records
from rocwright.verify.standing import local_evidence

ROW = Request(stack="pytorch", gpu=("gfx803",), base="debian:sid")


def run(home: Home, command: str, outcome: str, *steps: StepRun) -> None:
    with UnderWay(command, ROW, home, print) as under_way:
        for step in steps:
            under_way.note(step)
        findings = [Finding(component="pytorch", check="rehearse", name="edits", ok=True)]
        under_way.ended(outcome, findings=findings if command == "rehearse" else ())


BUILT = StepRun(name="pytorch", key="", outcome="failed", error={"class": "compile"}, kind="run", counted=9)
EDITS = StepRun(name="rehearsed/edits", key="", outcome="ok", kind=REHEARSAL, counted=5, tried=3)
FILES = StepRun(name="rehearsed/files", key="", outcome="ok", kind=REHEARSAL, counted=7, tried=7)


def test_a_rehearsal_is_counted_and_leaves_how_the_last_build_went(home: Home) -> None:
    run(home, "build", "failed", BUILT)
    run(
        home,
        "rehearse",
        "rehearsed",
        BUILT.model_copy(update={"outcome": "built", "error": {}}),
        EDITS,
        FILES,
    )
    with read_records(home) as records:
        [cell] = records.matrix()
    assert (cell.command, cell.outcome, cell.failure) == ("build", "failed", "compile")
    assert cell.said == "rehearsed"
    [evidence] = local_evidence(home)
    assert (evidence.said, evidence.detail) == ("rehearsed", "10 of 12 tried")


def test_a_build_after_it_says_more(home: Home) -> None:
    run(home, "rehearse", "rehearsed", EDITS)
    run(home, "build", "built", BUILT.model_copy(update={"outcome": "built", "error": {}}))
    with read_records(home) as records:
        [cell] = records.matrix()
    assert (cell.command, cell.said) == ("build", "built")
    assert set(cell.seen) == {"rehearsed", "built"}


def test_a_rehearsal_that_failed_is_no_evidence(home: Home) -> None:
    run(home, "rehearse", "failed", EDITS)
    assert local_evidence(home) == []
