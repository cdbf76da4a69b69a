"""The word that a row gets: each for what was tried, and none for less."""

from __future__ import annotations

from rocwheel_samples.tables import each
from rocwright.records.model import SAID, Finding, said_of
from rocwright.rehearsal.result import Rehearsed, RowRehearsed, TrialFault, TrialTally
from rocwright.rehearsal.text import lines

FAULT = TrialFault(name="a.h", detail="error: uint8_t does not name a type")


def row(*parts: TrialTally) -> RowRehearsed:
    one = Rehearsed(component="torch", version="2.6.0", parts=parts)
    return RowRehearsed(row="torch_gfx803", stack="torch", gpu="gfx803", base="arch", components=(one,))


def part(tried: int, all_: int, *failed: TrialFault) -> TrialTally:
    return TrialTally(
        part="compile", name="headers", tried=tried, all=all_, failed=failed, reasons=("no source",)
    )


@each(
    ("parts", "word"),
    [
        ((), "not rehearsed"),
        ((part(0, 7),), "not rehearsed"),
        ((part(7, 7),), "rehearsed (7 of 7)"),
        ((part(3, 7), part(2, 2)), "rehearsed in part (5 of 9)"),
        ((part(3, 7), part(2, 2, FAULT)), "rehearsal failed (1 of 5 tried)"),
    ],
)
def test_the_word_says_no_more_than_was_tried(parts: tuple[TrialTally, ...], word: str) -> None:
    assert row(*parts).word == word


def test_the_rest_is_told_with_its_reason_and_a_failure_by_name() -> None:
    told = "\n".join(lines(row(part(3, 7, FAULT))))
    assert "compile: headers: FAILED 1, tried 3 of 7" in told
    assert "failed   a.h: error: uint8_t does not name a type" in told
    assert "not tried  no source" in told


def finding(*, absent: bool = False) -> Finding:
    return Finding(component="torch", check="rehearse", name="headers", ok=True, absent=absent)


def test_rehearsed_is_evidence_below_built() -> None:
    assert SAID.index("checked against source") < SAID.index("rehearsed") < SAID.index("built")
    assert said_of("rehearse", "rehearsed", [finding(absent=True), finding()]) == "rehearsed"


@each(("outcome", "absent"), [("rehearsed", True), ("failed", False), ("stopped", False)])
def test_a_rehearsal_that_failed_or_tried_nothing_is_evidence_of_nothing(outcome: str, absent: bool) -> None:
    assert said_of("rehearse", outcome, [finding(absent=absent)]) == ""
