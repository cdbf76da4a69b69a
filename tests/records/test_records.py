"""What is put on record is read again, filtered, in pages, and as a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rocwright.home import Home
from rocwright.records.model import (
    Artifact,
    Figure,
    Finding,
    Promotion,
    Run,
    Said,
    Sample,
    StepRun,
    Which,
    said_of,
    with_failure,
)
from rocwright.records.opening import open_records, read_records
from rocwright.records.read import Records


@pytest.fixture
def records(home: Home) -> Iterator[Records]:
    with open_records(home) as opened:
        yield opened


def run(
    number: int, outcome: str = "built", *, stack: str = "vllm", gpu: str = "gfx1151", **more: object
) -> Run:
    """A run of one step, whose day is its number."""
    error = (
        {"class": "compile", "message": "it broke", "issue": "cmake-minimum"} if outcome == "failed" else {}
    )
    step = StepRun(
        name="torch", key="k", component="torch", kind="run", outcome=outcome, seconds=number, error=error,
        peak_memory=number * 2**30, compiler_cache={"hit": 3, "miss": 1}, needs=("tree/torch",),
    )  # fmt: skip
    values: dict[str, object] = {
        "id": f"run-{number}", "command": "build", "started": f"2026-01-{number:02d}T00:00:00Z", "seconds": 7,
        "stack": stack, "gpu": tuple(gpu.split(",")), "base": "debian:sid", "outcome": outcome,
        "said": said_of("build", outcome, []), "steps": (step,), "versions": {"torch": "2.8.0"},
    }  # fmt: skip
    return with_failure(Run.model_validate(values | more))


def test_a_run_is_read_as_it_was_put(records: Records) -> None:
    made = run(1, "failed", origin="cycle 7")
    number = records.put(made)
    assert records.run("run-1") == made.model_copy(update={"number": number})
    assert (made.failure, made.issue) == ("compile", "cmake-minimum")
    assert records.run("run-2") is None


def test_what_was_measured_is_read_as_it_was_put(records: Records) -> None:
    figure = Figure(name="speed", unit="GB/s", better="higher", values=(1.5, 2), device="cpu")
    step = StepRun(name="bench/torch/torch", key="", outcome="ok", kind="bench", measured=(figure,))
    made = run(1, "measured", command="bench", steps=(step,), lock="a lock")
    records.put(made)
    (found,) = records.steps(Which(command="bench", lock="a lock"))
    assert (found.step.measured, found.lock) == ((figure,), "a lock")


def test_a_run_can_be_watched_while_it_goes_on(records: Records) -> None:
    whole = run(1)
    queued = whole.steps[0].model_copy(update={"state": "queued", "outcome": ""})
    begun = whole.model_copy(update={"state": "running", "outcome": "", "steps": ()})
    before = records.changed()
    records.put(begun, {0: queued})
    assert records.changed()[0] > before[0]
    assert records.changed()[1] == before[1]
    assert records.runs(Which(state="running"))[0].steps[0].state == "queued"
    assert records.matrix() == []
    records.put(whole)
    (told,) = records.runs()
    assert (told.state, told.steps[0].state, told.steps[0].outcome) == ("ended", "ended", "built")


def test_runs_are_read_newest_first_by_their_begin_whatever_the_clock_said(records: Records) -> None:
    for day in (5, 9, 2):
        records.put(run(day))
    assert [one.id for one in records.runs()] == ["run-2", "run-9", "run-5"]
    assert records.matrix()[0].run == "run-2"


def test_runs_are_filtered_and_read_in_pages(records: Records) -> None:
    for day in range(1, 8):
        outcome, stack = ("failed" if day % 3 == 0 else "built"), ("vllm" if day % 2 else "ollama")
        records.put(run(day, outcome, stack=stack, gpu="gfx803,gfx1151" if day == 7 else "gfx1151"))

    def days(which: Which, limit: int = 50) -> list[int]:
        return [int(one.id[4:]) for one in records.runs(which, limit=limit)]

    assert days(Which(outcome="failed")) == [6, 3]
    assert days(Which(stack="vllm", outcome="built")) == [7, 5, 1]
    assert days(Which(gpu="gfx803")) == [7]
    assert days(Which(issue="cmake-minimum", stack="ollama")) == [6]
    assert days(Which(step="torch", since="2026-01-06")) == [7, 6]
    assert days(Which(until="2026-01-02")) == [1]
    assert days(Which(step="tor")) == []
    assert records.count(Which(stack="vllm")) == 4
    first = records.runs(limit=3)
    assert days(Which(before=first[-1].number), 3) == [4, 3, 2]


def test_rows_that_differ_in_what_else_they_ask_for_have_cells_of_their_own(records: Records) -> None:
    records.put(run(1))
    records.put(run(2, "failed", variant="torch=2.6.0"))
    cell: dict[str, Any] = {"stack": "vllm", "gpu": "gfx1151", "base": "debian:sid"}
    records.promote(Promotion(**cell, channel="nightly", run="run-1"))
    assert [(one.variant, one.run, list(one.channels)) for one in records.matrix()] == [
        ("", "run-1", ["nightly"]),
        ("torch=2.6.0", "run-2", []),
    ]
    assert [one.run for one in records.matrix(**cell, variant="")] == ["run-1"]
    assert records.promotions(**cell, variant="torch=2.6.0") == []
    assert [one.id for one in records.runs(Which(variant=""))] == ["run-1"]


def test_the_matrix_tells_the_newest_run_and_all_that_was_ever_seen(records: Records) -> None:
    def verified(number: int, device: str) -> Run:
        step = StepRun(name="verify/torch/smoke", key="", outcome="ok", kind="check")
        found = Finding(component="torch", check="smoke", name="adds", ok=True, device=device)
        about = {"command": "verify", "device": device, "said": said_of("verify", "verified", [found])}
        return run(number, "verified", **about, steps=(step,))

    for one in (run(1), verified(2, ""), verified(3, "llvmpipe"), verified(4, "RX 580"), run(5, "failed")):
        records.put(one)
    (cell,) = records.matrix(stack="vllm")
    assert (cell.run, cell.outcome, cell.issue) == ("run-5", "failed", "cmake-minimum")
    words: dict[Said, str] = {word: seen.run for word, seen in cell.seen.items()}
    assert words == {
        "built": "run-1",
        "checked without a GPU": "run-2",
        "ran in software": "run-3",
        "ran on a GPU": "run-4",
    }
    assert cell.said == "ran on a GPU"
    assert cell.seen["ran on a GPU"].device == "RX 580"
    assert cell.whole_seconds == 7


def test_a_run_that_was_stopped_takes_nothing_back(records: Records) -> None:
    for one in (run(1, "stopped"), run(2, "failed"), run(3, "stopped")):
        records.put(one)
    assert records.matrix()[0].outcome == "failed"
    records.put(run(4))
    records.put(run(5, "stopped"))
    assert records.matrix()[0].outcome == "built"


def test_a_run_of_several_gpus_counts_for_each_and_a_suite_or_a_trial_for_none(records: Records) -> None:
    records.put(run(1, gpu="gfx803,gfx1151"))
    records.put(run(2, command="suite"))
    records.put(run(3, "failed", origin="bisect 7"))
    assert [(one.gpu, one.run) for one in records.matrix()] == [("gfx1151", "run-1"), ("gfx803", "run-1")]


def test_an_older_run_that_ends_later_changes_nothing_in_the_matrix(records: Records) -> None:
    slow = run(1)
    records.put(slow.model_copy(update={"state": "running", "outcome": "", "said": ""}))
    records.put(run(2, "failed"))
    records.put(slow)
    (cell,) = records.matrix()
    assert (cell.run, cell.seen["built"].run) == ("run-2", "run-1")
    assert [(one.stack, one.name, one.seconds) for one in records.times()] == [("vllm", "torch", 1)]


def test_channels_hold_the_newest_promotion_and_keep_the_older_ones(records: Records) -> None:
    cell: dict[str, Any] = {"stack": "vllm", "gpu": "gfx1151", "base": "debian:sid"}
    before = records.changed()[1]
    for number in (1, 2):
        records.put(run(number))
        records.promote(Promotion(**cell, channel="nightly", run=f"run-{number}", why="it was built"))
    records.promote(Promotion(**cell, channel="known-good", run="run-1", why="three days", by="cycle"))
    (told,) = records.matrix()
    assert {name: seen.run for name, seen in told.channels.items()} == {
        "nightly": "run-2",
        "known-good": "run-1",
    }
    assert [one.run for one in records.promotions(channel="nightly", **cell)] == ["run-2", "run-1"]
    assert records.changed()[1] > before


def test_evidence_is_found_by_the_content_that_it_is_about(records: Records) -> None:
    found = [
        Finding(component="torch", check="wheel", name="canonical form", ok=True, sha256=digest, device="cpu")
        for digest in ("a" * 64, "b" * 64)
    ]
    made = Artifact(component="torch", step="torch", filename="torch.whl", sha256="a" * 64, size=9)
    records.put(run(1), findings=found, artifacts=[made])
    assert records.findings(sha256="a" * 64) == found[:1]
    assert records.findings(run="run-1") == found
    (kept,) = records.artifacts(sha256="a" * 64)
    assert (kept.run, kept.gpu, kept.size, kept.at) == ("run-1", ("gfx1151",), 9, "2026-01-01T00:00:00Z")
    assert records.artifacts(Which(gpu="gfx803"), component="torch") == []


def test_a_step_is_followed_over_time(records: Records) -> None:
    for day in (1, 2, 3):
        records.put(run(day, "failed" if day == 3 else "built"))
    points = records.steps(Which(stack="vllm", outcome="built"), component="torch")
    assert [(one.run, one.step.seconds, one.step.compiler_cache["hit"]) for one in points] == [
        ("run-2", 2, 3),
        ("run-1", 1, 3),
    ]
    assert [(one.seconds, one.cached) for one in records.times()] == [(2, 0.75)]
    resumed = run(4)
    (step,) = resumed.steps
    records.put(resumed.model_copy(update={"steps": (step.model_copy(update={"resumed": 1}),)}))
    assert [one.seconds for one in records.times()] == [2]
    found = records.run("run-4")
    assert found is not None
    assert found.steps[0].resumed == 1
    (met,) = records.met()
    assert (met.issue, met.failure, met.runs, met.run) == ("cmake-minimum", "compile", 1, "run-3")


def test_what_a_step_used_is_kept_in_the_order_of_time(records: Records) -> None:
    made = [Sample(step="torch", at=at, memory=int(at * 100), processes=2) for at in (2.0, 1.0)]
    records.put(run(1), samples=made)
    assert records.samples("run-1") == made[::-1]


def test_who_only_asks_leaves_nothing_on_the_disk(home: Home) -> None:
    with read_records(home) as records:
        assert records.runs() == []
        assert records.matrix() == []
        assert records.changed() == (0, 0)
    assert list(home.path.iterdir()) == []
