"""Files of a job on another machine: none is followed or waited for, and no odd report is believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.making import record_of

from rocbase.errors import InternalError
from rocwheel_samples.hostile_files import make_fifo, make_huge, make_link_to_zero, soon
from rocwheel_samples.tables import each
from rocwright.execution.executor import Task, ended
from rocwright.farm.slurm import _Job
from rocwright.model.steps import FetchAction, Step

STEP = Step(name="engine", component="engine", action=FetchAction(pending="engine"))
TASK = Task(step=STEP, store="file:///store", jobs=1)
FILES: dict[str, Callable[[Path], None]] = {
    "FIFO": make_fifo,
    "endless": make_link_to_zero,
    "huge": make_huge,
    "link": lambda path: path.symlink_to("/etc/passwd"),
}
OTHER = record_of(STEP).model_copy(update={"key": "0" * 64}).model_dump(mode="json")
TEXTS = (
    *("", "[]", "{", '"x"', "[" * 10**6, '{"record": null}', '{"record": {}}', '{"peak_memory": NaN}'),
    *('{"error": {"class": [1]}}', '{"error": {"message": 5}}', '{"error": []}'),
    json.dumps({"record": OTHER}),
)


@each("kind", FILES)
def test_neither_a_report_nor_a_log_is_followed_or_waited_for(tmp_path: Path, kind: str) -> None:
    report, log = tmp_path / f"{kind}.json", tmp_path / f"{kind}.log"
    FILES[kind](report)
    FILES[kind](log)
    with soon(5):
        assert ended(TASK, report, 1, lambda: InternalError("silent")).error is not None
        assert [*_Job("1", TASK, 1, 1, report, log).lines()] == []


@each("text", (None, *TEXTS))
def test_a_report_that_is_none_tells_nothing(tmp_path: Path, text: str | None) -> None:
    report = tmp_path / "report.json"
    if text is not None:
        report.write_text(text)
    told = ended(TASK, report, 1, lambda: InternalError("silent"))
    assert told.record is None and str(told.error) == "silent"


def test_a_report_of_this_step_is_believed(tmp_path: Path) -> None:
    (tmp_path / "r").write_text(json.dumps({"record": record_of(STEP).model_dump(mode="json")}))
    assert ended(TASK, tmp_path / "r", 1, lambda: InternalError("silent")).record == record_of(STEP)
