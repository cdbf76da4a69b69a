"""Where no line of a log is plainer, its last lines tell the failure."""

from __future__ import annotations

import io

import pytest

from rocwright.diagnosis.diagnose import ITS_END, Diagnosis, diagnose
from rocwright.diagnosis.ending import LAST_LINES, MOST_KEPT
from rocwright.diagnosis.read_log import pieces

LAST = "the graph crashed in a way that nobody has words for"


def of(*lines: str, piece: int = 4096) -> Diagnosis:
    return diagnose(pieces(io.BytesIO("".join(f"{line}\n" for line in lines).encode()), piece))


@pytest.mark.parametrize(
    "line",
    [
        LAST,
        "ggml-cuda.cu:75: ROCm error",
        "Windows fatal exception: code 0x8001010d",
        "Your installed thing uses CUDA but I cannot find it",
        "-1073741818 (0xC0000006, In Page Violation)",
        "2026-01-02T03:04:05Z web-1 | this card is not supported",
        "hipsolver : it wants libcholmod3 but that is not installable",
        "12/294 Test  #12: TestIntegrator .......***Failed",
        ">> The folder seems invalid",
    ],
)
def test_the_last_lines_tell_the_failure_where_no_line_is_plainer(line: str) -> None:
    found = of("fine", line, "bye").first
    assert found is not None
    assert (found.line, found.tool) == (2, ITS_END)
    assert found.lines[-1] == "bye"


def test_any_line_that_is_plainer_goes_before_the_end() -> None:
    found = of("a.c:1:1: error: x", *["fine"] * 40, LAST).first
    assert found is not None
    assert found.line == 1


def test_the_end_goes_before_a_line_that_only_follows_from_an_error() -> None:
    found = of("rocm://1 is not supported.", "SystemExit: 1").first
    assert found is not None
    assert (found.line, found.tool) == (1, ITS_END)
    found = of("SystemExit: 1", LAST).first
    assert found is not None
    assert found.line == 1


def test_words_far_from_the_end_tell_nothing() -> None:
    assert of(LAST, *["fine"] * 30).first is not None
    assert of(LAST, *["fine"] * LAST_LINES).first is None
    found = of(LAST, *["fine"] * (LAST_LINES - 1)).first
    assert found is not None
    assert found.line == 1


@pytest.mark.parametrize(
    "line",
    [
        "0 failed, 3 passed",
        "errors: 0",
        "level=INFO cannot x",
        "-- x: not supported",
        "No broken requirements found.",
        "Success: no issues found in 1535 source files",
        "Manually-specified variables were not used by the project:",
        "edit CMakeLists.txt: 1 changed (an operator fails there)",
    ],
)
def test_a_calm_end_tells_nothing(line: str) -> None:
    assert of("fine", line).first is None


@pytest.mark.parametrize("piece", [100, 1000, MOST_KEPT, 10 * MOST_KEPT])
def test_the_end_is_the_same_however_the_log_comes(piece: int) -> None:
    found = of(*(f"fine {number}" for number in range(3000)), LAST, "bye", piece=piece).first
    assert found is not None
    assert (found.line, found.text) == (3001, LAST)


def test_a_last_line_longer_than_what_is_kept_is_cut() -> None:
    assert of("fine", "x" * (2 * MOST_KEPT)).first is None
    assert of("fine", "cannot" + " x" * MOST_KEPT).first is None


def others(*lines: str) -> list[int]:
    return [one.line for one in of(*lines).others]


def test_where_the_first_error_is_not_the_one_other_lines_are_told() -> None:
    found = of("step 4: hipModuleLoad failed", "fine", "Aborted (core dumped)", "make: *** [all] Error 1")
    assert found.first is not None
    assert found.first.line == 3
    assert [(one.line, one.text) for one in found.others] == [
        (1, "step 4: hipModuleLoad failed"),
        (4, "make: *** [all] Error 1"),
    ]


def test_another_line_that_is_an_error_by_its_form_goes_before_one_with_words_only() -> None:
    assert others("it failed", "a.c:1:1: error: x", "ValueError: y", "INFO it failed too") == [3, 1]


def test_calm_lines_and_those_of_what_only_follows_are_told_last() -> None:
    crash, calm, made = "Aborted (core dumped)", "WARNING it failed", "make: *** [all] Error 1"
    assert others(crash, calm, made, "it failed") == [4, 2]
    assert others(crash, calm, "it failed", "and again it failed") == [3, 4]


def test_where_nothing_is_found_the_last_lines_are_told_and_no_error() -> None:
    found = of("one", "DEBUG it failed", "two", "", "three", "four")
    assert found.first is None
    assert [one.line for one in found.others] == [2, 6, 5]
    assert others("one") == [1]
    assert others() == []


def test_where_the_cause_of_the_first_error_is_known_no_other_line_is_told() -> None:
    found = of("a.cpp:3:10: fatal error: hip/hip_runtime.h: No such file or directory", "it failed")
    assert found.cause is not None
    assert found.others == ()
