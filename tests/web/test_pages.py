"""The pages that are read: what they say, and what they never do."""

from __future__ import annotations

import html
import re
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwright.home import Home
from rocwright.records.model import Artifact, Finding, Promotion, Sample
from rocwright.records.read import Records
from rocwright.web.log_lines import LONGEST, clean_line, read_part
from rocwright.web.report import report
from tests.web.serving import Served, a_run, a_step, serve_site, until, write_log

EVIL = "<script>alert('x')</script>\"'&"
"""A name as somebody wrote it who means harm."""


def test_every_answer_has_the_headers_of_safety(served: Served) -> None:
    client = served.client()
    for path in ("/", "/runs", "/issues", "/enter", "/static/live.js", "/nowhere", "/runs/none"):
        answer = client.get(path)
        assert "default-src 'none'" in answer.headers["content-security-policy"], path
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        # what the policy forbids would not work
        assert " style=" not in answer.text and "<style" not in answer.text and " onclick" not in answer.text


def test_names_and_logs_are_never_markup(served: Served, records: Records, home: Home) -> None:
    step = a_step(name=EVIL, outcome="failed", error={"class": "compile", "message": EVIL, "detail": EVIL})
    run = a_run(stack=EVIL, gpu=(EVIL,), base=EVIL, outcome="failed", steps=(step,), origin=EVIL, device=EVIL)
    found = Finding(component=EVIL, check=EVIL, name=EVIL, ok=False, detail=EVIL, device=EVIL)
    made = Artifact(component=EVIL, step=EVIL, filename=EVIL, sha256="0" * 64, size=1)
    records.put(
        run, findings=[found], artifacts=[made], samples=[Sample(step=EVIL, at=1, memory=1, processes=1)]
    )
    records.promote(Promotion(stack=EVIL, gpu=EVIL, base=EVIL, channel=EVIL, run=run.id, by=EVIL, why=EVIL))
    write_log(home, run, f"2026-01-01T00:00:00.000Z {EVIL}\n$ {EVIL}\nwarning: {EVIL}\n")
    client = served.client("read")
    cell = client.get("/cell", params={"stack": EVIL, "gpu": EVIL, "base": EVIL})
    log = client.get(f"/runs/{run.id}/log/{EVIL}")
    pages = [client.get("/"), client.get("/runs"), client.get(f"/runs/{run.id}"), cell, log]
    pages += [client.get("/", params={"stack": EVIL}), client.get("/enter", params={"to": f"/{EVIL}"})]
    for page in pages:
        assert page.status_code == 200, page.url
        assert "<script>alert" not in page.text
        assert html.escape("<script>alert")[:10] in page.text, page.url


def test_rows_that_differ_in_their_pins_are_both_shown(served: Served, records: Records) -> None:
    pin = "torch=2.6.0 +x"
    records.put(a_run("run-1"))
    records.put(a_run("run-2", variant=pin, outcome="failed"))
    client = served.client()
    matrix = client.get("/").text
    assert matrix.count('class="cell') == 2 and pin in matrix
    links = [html.unescape(link) for link in re.findall(r'data-base="[^"]+"><a href="(/cell[^"]+)"', matrix)]
    for link, mine, other in zip(links, ("run-1", "run-2"), ("run-2", "run-1"), strict=True):
        page = client.get(link).text
        assert f"/runs/{mine}" in page and f"/runs/{other}" not in page
    told = report(records)
    assert pin in told and told.count('class="cell') == 2


@pytest.mark.parametrize("path", ["..%2f..%2ftokens.json", "../../tokens.json", "%2e%2e/tokens.json", "x%00"])
def test_no_address_leads_out_of_the_runs(served: Served, records: Records, home: Home, path: str) -> None:
    (home.path / "tokens.json").write_text('{"token": []}')
    records.put(a_run())
    for place in (f"/runs/{path}", f"/runs/{a_run().id}/log/{path}", f"/static/{path}"):
        assert served.client().get(place).status_code == 404


def test_secrets_are_masked_in_logs_and_errors(home: Home, records: Records) -> None:
    served = serve_site(home, records, hidden=("hunter2-hunter2",))
    lines = "export MY_TOKEN=abc123\nfetch https://me:pass123@host/x\nit says hunter2-hunter2 aloud\n"
    run = a_run(outcome="failed", steps=(a_step(outcome="failed", error={"message": "x", "detail": lines}),))
    records.put(run)
    write_log(home, run, lines)
    for path in (f"/runs/{run.id}", f"/runs/{run.id}/log/alpha"):
        text = served.client().get(path).text
        assert text.count("***") == 3
        assert not any(word in text for word in ("abc123", "pass123", "hunter2"))


@given(st.text(alphabet=st.sampled_from("a.=\x1b[]m:/@token \n\r\x00<é"), max_size=300))
def test_any_line_becomes_a_harmless_one(text: str) -> None:
    line = clean_line(text)
    assert "\x1b" not in line.text and "\x00" not in line.text and "\r" not in line.text


def test_a_line_that_would_take_long_to_search_does_not() -> None:
    line = clean_line("a." * 32_000 + "token" * 100)
    assert len(line.text) < LONGEST + 60


@given(st.lists(st.text(alphabet="abé\u2028\x0c", max_size=30), max_size=40), st.integers(40, 200))
def test_parts_of_a_log_hold_each_line_once(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], most: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    path.write_bytes("".join(f"{one}\n" for one in lines).encode() + b"unfinished")
    found: list[str] = []
    at = 0
    while (part := read_part(path, at, (), most)).end > at:
        at = part.end
        found += [one.text for one in part.lines]
    assert "".join(found).replace("unfinished", "") == "".join(clean_line(one).text for one in lines)
    assert read_part(path, -10_000).lines == read_part(path, 0).lines


def test_a_secret_is_not_shown_from_its_middle_on(served: Served, records: Records, home: Home) -> None:
    run = a_run()
    records.put(run)
    text = "begin\nexport API_TOKEN=squeamish-ossifrage and more\nend\n" * 2
    write_log(home, run, text)
    path = home.runs / run.id / run.steps[0].log
    for start in (*range(len(text)), *range(-len(text), 0)):
        part = read_part(path, start)
        assert not any("frage" in one.text for one in part.lines), start
        assert start % len(text) > len(text) - 4 or part.lines[-1].text == "end", start
    page = served.client().get(f"/runs/{run.id}/log/alpha?from={text.index('frage')}")
    assert page.status_code == 200 and "frage" not in page.text


def test_a_number_that_is_too_large_is_none(served: Served, records: Records, home: Home) -> None:
    run = a_run()
    records.put(run)
    write_log(home, run, "a line\n")
    client = served.client()
    for number in ("9" * 18, "9" * 19, "9" * 30, "9" * 5000, "\u00b2", "-1"):
        assert client.get("/runs", params={"before": number}).status_code == 200
        assert client.get(f"/runs/{run.id}/log/alpha", params={"from": number}).status_code == 200
        assert client.get(f"/runs/{run.id}/log/alpha/live", params={"from": number}).status_code == 200


def test_the_matrix_is_made_anew_only_when_a_cell_changes(served: Served, records: Records) -> None:
    records.put(a_run())
    client = served.client()
    first = client.get("/")
    assert "tiny" in first.text and "built" in first.text
    tag = {"if-none-match": first.headers["etag"]}
    assert client.get("/", headers=tag).status_code == 304
    mine = served.client("read").get("/", headers=tag)
    assert mine.status_code == 200 and "Sign out" in mine.text
    assert "Sign out" not in client.get("/").text
    records.put(a_run("20260102T000000.000000Z-000002", gpu=("gfx1103",)))
    assert "gfx1103" in client.get("/", headers=tag).text


def test_what_says_how_long_ago_grows_old_and_is_drawn_anew(
    served: Served, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    records.put(a_run())
    with served.client() as client:
        first = client.get("/").text
        monkeypatch.setattr("rocwright.web.matrix.OLD_SECONDS", -1.0)
        monkeypatch.setattr("rocwright.web.matrix._section", lambda cells, order: "<p>anew</p>")
        assert client.get("/").text == first
        until(lambda: "anew" in client.get("/").text)


def test_who_watched_a_try_end_is_shown_the_next_one(served: Served, records: Records) -> None:
    for name, outcome in (("one", "failed"), ("two", "built")):
        records.put(a_run(name, origin="page run 1", outcome=outcome))
    client = served.client()
    assert 'content="2; url=/runs/two?live"' in client.get("/runs/one?live").text
    assert "refresh" not in client.get("/runs/one").text
    assert "refresh" not in client.get("/runs/two?live").text


def test_pages_of_runs_follow_each_other(served: Served, records: Records) -> None:
    for number in range(60):
        records.put(a_run(f"run-{number:03}", stack=f"stack-{number:03}"))
    client = served.client()
    first = client.get("/runs")
    assert "stack-059" in first.text and "stack-005" not in first.text
    more = html.unescape(first.text.split('<a href="/runs?before=')[1].split('"')[0])
    assert "stack-005" in client.get(f"/runs?before={more}").text


def test_a_run_says_what_broke_and_what_mends_it(served: Served, records: Records, home: Home) -> None:
    error = {
        "class": "compile",
        "message": "it does not configure",
        "cause": "too old",
        "issue": "cmake-minimum",
    }
    run = a_run(outcome="failed", steps=(a_step(outcome="failed", error=error),), issue="cmake-minimum")
    records.put(run)
    text = served.client().get(f"/runs/{run.id}").text
    assert "it does not configure" in text and "/issues#cmake-minimum" in text and "Remedy" in text
    issues = served.client().get("/issues").text
    assert issues.index('id="cmake-minimum"') < issues.index("<details", issues.index("cmake-minimum") + 200)


def test_a_database_that_is_locked_or_gone_is_told_and_the_matrix_stays(
    served: Served, records: Records, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    records.put(a_run())
    client = served.client()
    client.get("/")
    with records.database.reading() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout = 10")
    records.database.engine.dispose()
    monkeypatch.setattr("rocwright.records.faults.WAIT", 0.01)
    other = sqlite3.connect(home.records, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("PRAGMA journal_mode = DELETE")
    other.execute("BEGIN EXCLUSIVE")
    try:
        answer = client.get("/runs")
        assert answer.status_code == 503
        assert "the records" in answer.text and "Traceback" not in answer.text
        assert "tiny" in client.get("/").text
    finally:
        other.close()
    assert client.get("/runs").status_code == 200
