"""The report of a rehearsal step comes from a stranger's tree: what it may say, and what is made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rocbase.errors import ExplainedError
from rocwright.rehearsal.book import Trial
from rocwright.rehearsal.report import LARGEST, parts_of, read_report

TRIALS = (
    Trial(part="device", name="kernels", on=("rocm",), run="true", files=("*.cu",)),
    Trial(part="import", name="package", on=("rocm",), run="true"),
)
UNIT = {"trial": 0, "unit": "a.cu", "ok": True, "detail": ""}
GOOD: dict[str, Any] = {"schema": 1, "of": [3, 1], "units": [UNIT], "tools": {"gcc": "gcc 16"}}


def written(folder: Path, **otherwise: Any) -> Path:
    path = folder / "report.json"
    path.write_text(json.dumps(GOOD | otherwise))
    return path


def test_a_report_is_counted_trial_by_trial(tmp_path: Path) -> None:
    bad = {"trial": 1, "unit": "package", "ok": False, "detail": "NameError: amdsmi_init"}
    kernels, package = parts_of(read_report(written(tmp_path, units=[UNIT, bad]), 2), TRIALS)
    assert (kernels.tried, kernels.all, kernels.failed) == (1, 3, ())
    assert kernels.reasons == ("2 kernels: a sample; --all tries each",)
    assert (package.tried, package.all) == (1, 1)
    assert [(one.name, one.detail) for one in package.failed] == [("package", "NameError: amdsmi_init")]


def test_a_trial_that_finds_no_file_has_failed(tmp_path: Path) -> None:
    kernels, _ = parts_of(read_report(written(tmp_path, of=[0, 1], units=[]), 2), TRIALS)
    assert [one.detail for one in kernels.failed] == ["no file matches *.cu"]


def test_what_a_terminal_would_obey_is_not_told(tmp_path: Path) -> None:
    bad = UNIT | {"ok": False, "detail": "\x1b[2Jall went well"}
    kernels, _ = parts_of(read_report(written(tmp_path, units=[bad]), 2), TRIALS)
    assert "\x1b" not in kernels.failed[0].detail


@pytest.mark.parametrize(
    "otherwise",
    [
        {"of": [3]},
        {"of": [3, 1, 1]},
        {"of": [-1, 1]},
        {"units": [UNIT | {"trial": 2}]},
        {"units": [UNIT] * 4},
        {"units": [UNIT | {"ok": "yes, all"}]},
        {"units": [UNIT | {"detail": "x" * 601}]},
        {"tools": {"gcc": "x" * 601}},
        {"schema": 2},
        {"more": "than is asked for"},
    ],
    ids=str,
)
def test_a_report_of_anything_else_is_refused(tmp_path: Path, otherwise: dict[str, Any]) -> None:
    with pytest.raises(ExplainedError):
        read_report(written(tmp_path, **otherwise), 2)


@pytest.mark.parametrize("text", ["", "[" * 100_000, '{"schema": 1, "schema": 1}', "NaN", "\xff"], ids=repr)
def test_what_is_no_report_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ExplainedError):
        read_report(path, 2)


def test_a_report_without_an_end_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(GOOD) + " " * LARGEST)
    with pytest.raises(ExplainedError, match="too much"):
        read_report(path, 2)
