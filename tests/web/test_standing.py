"""What the matrix answers first: what is broken and by what, what runs and for how long, what to install."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

from click.testing import CliRunner

from rocwheel_samples.tables import each
from rocwright.cli import cli
from rocwright.follow.cycle.model import Culprit, CycleTold, RowTold
from rocwright.plan.resolve.model import Request
from rocwright.records.model import (
    Artifact,
    Cell,
    NewestEvidence,
    Promotion,
    Run,
    StepRun,
    StepTime,
    with_failure,
)
from rocwright.records.read import Records
from rocwright.web.cells import offer
from rocwright.web.eta import going, in_a_word
from rocwright.web.failures import broken
from rocwright.web.installing import IndexAt
from rocwright.web.matrix import highest
from rocwright.web.report import report
from tests.web.serving import Served, a_run, a_step

ORDER = ("nightly", "candidate", "known-good")
AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


def put(records: Records, hour: int, gpu: str, version: str, *, ok: bool = True, **more: object) -> Run:
    error = {"class": "compile", "issue": "cmake-minimum", "message": "it does not configure"}
    step = a_step() if ok else a_step(outcome="failed", error=error)
    said = {"outcome": step.outcome, "steps": (step,), "gpu": (gpu,), "versions": {"alpha": version}}
    said |= {"started": f"2026-01-01T{hour:02}:00:00Z", "said": "built" if ok else "", "lock": version * 8}
    run = with_failure(a_run(f"run-{gpu}-{hour:02}", **(said | more)))
    records.put(run)
    return run


def test_what_broke_alike_is_told_once_with_its_first_failure_and_what_changed(records: Records) -> None:
    for gpu in ("gfx1030", "gfx803"):
        put(records, 1, gpu, "1.0")
        put(records, 2, gpu, "1.1", ok=False)
        put(records, 3, gpu, "1.0", ok=False, origin="bisect 7")
        put(records, 4, gpu, "1.2", ok=False)
    put(records, 1, "gfx1151", "1.0")
    (one,) = broken(records, records.matrix())
    assert one.gpus == ("gfx803", "gfx1030")
    assert one.since == "2026-01-01T02:00:00Z"
    assert one.good is not None
    assert one.good.started == "2026-01-01T01:00:00Z"
    assert (one.changes, one.says) == (("alpha 1.0 → 1.1",), "it does not configure")
    assert one.issue is not None
    assert one.issue.name == "cmake-minimum"


def test_a_build_that_its_checks_found_wrong_was_never_good(records: Records) -> None:
    put(records, 1, "gfx803", "1.0")
    put(records, 2, "gfx803", "1.1")
    put(records, 3, "gfx803", "1.1", ok=False, command="verify")
    (one,) = broken(records, records.matrix())
    assert one.changes == ("alpha 1.0 → 1.1",)


def test_a_culprit_that_a_cycle_found_is_named(records: Records) -> None:
    put(records, 1, "gfx803", "1.0", ok=False)
    request = Request(stack="tiny", gpu=("gfx803",), base="debian:sid")
    culprit = Culprit(
        says=("alpha fails: x", "tried 1", "culprit", "  alpha 1 -> 2", "  abcdef  a change"), report=""
    )
    row = RowTold(request=request, state="failed", culprit=culprit)
    told = CycleTold(id="1", started="", seconds=1, rows=(row,))
    (one,) = broken(records, records.matrix(), told)
    assert one.culprit == "alpha 1 -> 2 · abcdef  a change"
    assert one.good is None


def test_the_matrix_says_first_what_is_broken_and_what_runs(served: Served, records: Records) -> None:
    client = served.client()
    assert "Nothing is on record yet" in client.get("/").text
    put(records, 1, "gfx803", "1.0")
    page = client.get("/").text
    assert "<title>1 of 1 passing" in page
    assert "Nothing runs." in page
    put(records, 2, "gfx803", "1.1", ok=False)
    page = client.get("/").text
    assert "<title>1 failing" in page
    assert "icon-bad.svg" in page
    assert page.index("<h1>1 failing") < page.index("alpha 1.0 → 1.1") < page.index('class="matrix"')
    tag = client.get("/").headers["etag"]
    records.put(a_run("run-now", outcome="", state="running", steps=(under_way("a"), under_way("b"))))
    answer = client.get("/", headers={"if-none-match": tag})
    assert answer.status_code == 200
    assert "0 of 2 steps · now a, b" in answer.text


def test_only_rows_that_passed_are_called_passing(served: Served, records: Records) -> None:
    put(records, 1, "gfx803", "1.0")
    for number, (gpu, command, outcome) in enumerate(
        (("gfx900", "build", "stopped"), ("gfx1030", "rehearse", "rehearsed")), start=1
    ):
        records.put(a_run(f"run-{number}", gpu=(gpu,), command=command, outcome=outcome))
    told = "1 stopped, 1 never built, 1 passing"
    page = served.client().get("/").text
    assert f"<title>{told}" in page and f"<h1>{told}</h1>" in page
    assert '<span class="look never-built">never built</span>' in page
    assert f"<title>{told}, rocwright" in report(records)
    rows = json.loads(CliRunner().invoke(cli, ["report", "--json"]).output)
    assert {row["gpu"]: row["standing"] for row in rows} == {
        "gfx803": "passing",
        "gfx900": "stopped",
        "gfx1030": "never built",
    }


def under_way(name: str, **more: object) -> StepRun:
    return a_step(name=name, outcome="", state="running", started="2026-01-01T11:59:00Z", **more)


def took(name: str, seconds: float, stack: str = "tiny") -> StepTime:
    return StepTime(stack=stack, name=name, seconds=seconds, jobs=1, peak_memory=None, cached=0, counted=0)


def test_what_is_left_goes_along_the_longest_way() -> None:
    steps = (
        a_step(name="source"),
        under_way("alpha", needs=("source",)),
        a_step(name="beta", outcome="", state="queued", needs=("alpha",)),
        a_step(name="gamma", outcome="", state="queued", needs=("source",)),
    )
    run = a_run(outcome="", state="running", started="2026-01-01T11:58:00Z", steps=steps)
    times = [took("alpha", 100), took("alpha", 9000, "other"), took("beta", 200), took("gamma", 30)]
    told = going(run, times, AT)
    # alpha has run for 60 of its 100 seconds, and beta waits for it
    assert (told.words, told.share) == ("1 of 4 steps · now alpha · about 4 min left", 120 / 360)
    assert in_a_word(run) == "1 of 4: build tiny gfx1151"
    assert going(run, times[:2], AT).left == ""
    assert going(run, [took("alpha", 59), *times[2:]], AT).left == ""


def test_steps_that_wait_for_each_other_have_no_time_left_to_tell() -> None:
    round_ = (under_way("a", needs=("b",)), under_way("b", needs=("a",)))
    run = a_run(outcome="", state="running", steps=round_)
    assert going(run, [took("a", 900), took("b", 900)], AT).left == ""


@each("held", [ORDER, ORDER[::-1], ("own", *ORDER)])
def test_the_highest_channel_is_the_last_of_the_order(held: tuple[str, ...]) -> None:
    assert highest(ORDER, held) == "known-good"
    assert highest(ORDER, ()) == ""


def test_what_is_offered_is_what_the_highest_channel_holds(
    served: Served, records: Records, tmp_path: Path
) -> None:
    for hour, version in ((1, "1.0"), (2, "1.1")):
        run = put(records, hour, "gfx803", version)
        name = f"alpha-{version}-py3-none-any.whl"
        made = Artifact(component="alpha", step="alpha", filename=name, sha256=f"{hour}" * 64, size=1)
        records.put(run, artifacts=[made])
    cell: Cell = records.matrix()[0]
    newest = offer(records, cell, ORDER, tmp_path, IndexAt(server="http://here"))
    assert newest is not None
    assert (newest.channel, [one.filename for one in newest.files]) == ("", ["alpha-1.1-py3-none-any.whl"])
    for channel in ("known-good", "candidate"):
        about = {"stack": "tiny", "gpu": "gfx803", "base": "debian:sid", "lock": "1.0" * 8}
        records.promote(Promotion(channel=channel, run="run-gfx803-01", **about))
    cell = records.matrix()[0]
    held = offer(records, cell, ORDER, tmp_path, IndexAt(server="http://here"))
    assert held is not None
    assert (held.channel, [one.filename for one in held.files]) == (
        "known-good",
        ["alpha-1.0-py3-none-any.whl"],
    )
    # what does not lie in the folder of the index is in no line
    assert held.lines == ()
    page = served.client().get("/gpu/gfx803").text
    assert re.search(r'class="channel known-good".*?alpha-1\.0', page, re.DOTALL)
    assert served.client().get("/gpu/gfx900").status_code == 404
    nothing = cell._replace(seen={}, channels={"nightly": NewestEvidence("no such run", "", "", "", 1)})
    assert offer(records, nothing, ORDER, tmp_path, IndexAt(server="http://here")) is None


def test_the_page_of_a_gpu_is_found_by_any_of_its_names(served: Served) -> None:
    client = served.client()
    told = client.get("/gpu/RX 580", follow_redirects=False)
    assert told.status_code == 303
    assert told.headers["location"].endswith("/gpu/gfx803")
    assert "another maker: NVIDIA" in client.get("/gpu/RTX 4090").text
