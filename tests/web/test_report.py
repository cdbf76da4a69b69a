"""`rocwright report`: one file that needs nothing else."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocbase.errors import InputError
from rocwright.home import Home
from rocwright.records.model import Artifact, Promotion, Sample, with_failure
from rocwright.records.read import Records
from rocwright.web.report import report
from rocwright.web.verbs.report import command
from tests.web.serving import a_run, a_step, serve_site

EVIL = "<img src=//elsewhere.example/x onerror=alert(1)>"
VOID = {"meta", "link", "input", "img", "path", "rect", "line", "polyline", "br"}
LOADS = {"src", "srcset", "href", "xlink:href", "data", "action", "poster", "background", "ping"}


class Reader(HTMLParser):
    """What a page is made of."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.style = self.text = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.style += data
        else:
            self.text += data


def fill(records: Records, cells: int = 1) -> None:
    for number in range(cells):
        name = f"gfx{number:04}"
        step = a_step()
        if number % 3 == 2:
            error = {"class": "compile", "issue": "cmake-minimum", "message": EVIL}
            step = a_step(outcome="failed", error=error)
        run = a_run(f"run-{number:05}", gpu=(name,), outcome=step.outcome, steps=(step,), said="built")
        run = with_failure(run)
        records.put(run)
        records.promote(
            Promotion(
                stack="tiny",
                gpu=name,
                base="debian:sid",
                channel="nightly",
                run=run.id,
                lock="a" * 64,
                why=EVIL,
            )
        )


def test_the_page_is_one_file_that_asks_nobody(records: Records) -> None:
    fill(records, 3)
    page = Reader(report(records))
    assert page.open == []
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form", "a"} & set(page.tags)
    assert not LOADS & {name for name, _ in page.attributes}
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not any(word in page.style for word in ("url(", "@import", "@font-face", "//"))
    assert ("http-equiv", "content-security-policy") in page.attributes
    # and it says what stands
    assert EVIL in page.text
    for word in ("gfx0000", "debian:sid", "cmake-minimum", "nightly", "aaaaaaaaaaaa"):
        assert word in page.text


def test_its_size_goes_with_what_stands(records: Records) -> None:
    fill(records, 150)
    page = report(records)
    assert len(page.encode()) < 150 * 1024
    assert len(report(records, "no such stack").encode()) < 20 * 1024


def test_the_verb_writes_a_file_a_table_or_json(home: Home, records: Records, tmp_path: Path) -> None:
    fill(records, 3)
    target = tmp_path / "out/report.html"
    answer = CliRunner().invoke(command, ["--html", str(target)])
    assert answer.exit_code == 0, answer.output
    assert target.read_text().startswith("<!DOCTYPE html>")
    assert Reader(target.read_text()).tags.count("td") > 3
    table = CliRunner().invoke(command, []).output
    assert "gfx0002" in table and "failing" in table and "nightly" in table
    rows = json.loads(CliRunner().invoke(command, ["--json", "--stack", "tiny"]).stdout)
    assert [(row["gpu"], row["outcome"], row["failure"]) for row in rows] == [
        ("gfx0000", "built", ""),
        ("gfx0001", "built", ""),
        ("gfx0002", "failed", "compile"),
    ]
    assert rows[0]["said"] == "built"
    assert json.loads(CliRunner().invoke(command, ["--json", "--stack", "other"]).stdout) == []


def test_where_nothing_is_on_record_it_says_so_and_makes_no_records(tmp_path: Path, home: Home) -> None:
    target = tmp_path / "report.html"
    answer = CliRunner().invoke(command, ["--html", str(target)])
    assert answer.exit_code == 0, answer.output
    assert "Nothing is on record" in target.read_text()
    assert not home.records.exists()


@pytest.mark.parametrize("place", ["file/report.html", "/proc/nowhere/report.html"])
def test_a_place_that_cannot_be_written_is_no_fault_of_rocwright(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    answer = CliRunner().invoke(command, ["--html", str(tmp_path / place)])
    assert isinstance(answer.exception, InputError)


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12) | st.just(
    EVIL
)
NUMBERS = st.integers(0, 2**40)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(WORDS, min_size=8, max_size=8), numbers=st.lists(NUMBERS, min_size=4, max_size=4))
def test_any_record_gives_pages_in_which_it_is_only_text(
    records: Records, home: Home, words: list[str], numbers: list[int]
) -> None:
    stack, gpu, base, name, channel, device, why, file = words
    error = {"class": name, "message": why, "cause": why, "issue": name}
    steps = (
        a_step(
            name=name, outcome="failed", error=error, needs=(name, why), seconds=numbers[0], component=name
        ),
        a_step(name=why, peak_memory=numbers[1], compiler_cache={"hit": numbers[2], "miss": numbers[3]}),
    )
    run = a_run(
        stack=stack,
        gpu=(gpu,),
        base=base,
        outcome="failed",
        steps=steps,
        device=device,
        origin=why,
        versions={name: device},
        seconds=numbers[0],
    )
    made = Artifact(component=name, step=name, filename=file, sha256="0" * 64, size=numbers[1])
    samples = [Sample(step=name, at=at, memory=numbers[2], processes=1) for at in (1, 2)]
    records.put(run, artifacts=[made], samples=samples)
    records.promote(Promotion(stack=stack, gpu=gpu, base=base, channel=channel, run=run.id, by=why, why=why))
    client = serve_site(home, records).client()
    cell = {"stack": stack, "gpu": gpu, "base": base}
    asked: list[tuple[str, dict[str, str]]] = []
    asked += [
        (path, {}) for path in ("/", "/runs", f"/runs/{run.id}", "/artifacts", f"/artifacts/{'0' * 64}")
    ]
    asked += [("/cell", cell), ("/trends", cell), ("/compare", {"a": run.id, "b": run.id})]
    for path, query in asked:
        answer = client.get(path, params=query)
        assert answer.status_code == 200, (path, answer.text)
        assert "img" not in Reader(answer.text).tags, path
    assert "img" not in Reader(report(records)).tags
