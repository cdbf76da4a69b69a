"""What a failed run's page says of it: the lines of the log that tell it, wherever they are."""

from __future__ import annotations

import html
import re

import pytest

from rocwright.home import Home
from rocwright.records.model import Run
from rocwright.records.read import Records
from rocwright.web.broken_steps import AFTER, WIDEST
from tests.web.filled import FIRST, long_log
from tests.web.serving import Served, a_run, a_step, serve_site, write_log

BARE = {"class": "compile", "message": "the build commands ended with status 1"}
TOLD = BARE | {"cause": FIRST, "detail": FIRST, "next": "rocwright logs STEP shows the whole log"}


def broken_run(records: Records, outcome: str = "failed", **step: object) -> Run:
    run = a_run(outcome=outcome, steps=(a_step(outcome=outcome, **step),))
    records.put(run)
    return run


def telling(text: str) -> list[str]:
    """The lines that the page has of the log."""
    (found,) = re.findall(r'<pre class="telling"[^>]*>(.*?)</pre>', text, re.DOTALL)
    return html.unescape(re.sub(r"</?strong[^>]*>", "", found)).splitlines()


@pytest.mark.parametrize("error", [BARE, TOLD], ids=["nothing told", "told"])
def test_the_first_error_is_shown_with_its_context_however_long_the_log(
    served: Served, records: Records, home: Home, error: dict[str, str]
) -> None:
    run = broken_run(records, error=error)
    write_log(home, run, long_log())
    text = served.client().get(f"/runs/{run.id}").text
    lines = telling(text)
    assert lines[2:5] == ["-- Looking for header_4999.h - found", FIRST, lines[4]]
    assert lines[4].startswith("a-path-that-has-no-place-to-break-at/")
    assert "  Update the VERSION argument <min> value." in lines
    assert f"alpha: {html.escape(FIRST)}</h2>" in text
    assert f'<strong class="first">{html.escape(FIRST)}</strong>' in text


def test_what_the_last_good_log_did_not_have_is_shown(served: Served, records: Records, home: Home) -> None:
    good = a_run("20251231T000000.000000Z-000001", steps=(a_step(),))
    other = a_run("20251231T000001.000000Z-000001", gpu=("gfx803",), steps=(a_step(),))
    for one in (good, other):
        records.put(one)
    write_log(home, good, "-- error: not found (optional)\nalways said 1\n")
    write_log(home, other, "-- error: not found (optional)\n")
    run = broken_run(records, error=BARE)
    write_log(
        home, run, "-- error: not found (optional)\nalways said 2\nthe plug <is> missing, token=abcdefgh1\n"
    )
    text = served.client().get(f"/runs/{run.id}").text
    assert "1 line that its last good log did not have" in text
    log = served.client().get(f"/runs/{run.id}/log/alpha").text
    assert "1 line that its last good log did not have" in log
    assert re.findall(r'<div class="line new"[^>]*>(.*?)</div>', log) == [
        '<span class="at"></span>the plug &lt;is&gt; missing, token=***'
    ]
    assert "3  the plug &lt;is&gt; missing, token=***" in text


def test_without_a_good_log_nothing_is_said_to_be_new(served: Served, records: Records, home: Home) -> None:
    run = broken_run(records, error=BARE)
    write_log(home, run, long_log())
    assert "last good log" not in served.client().get(f"/runs/{run.id}").text


def test_a_link_leads_to_the_first_error_in_the_middle_of_a_log(
    served: Served, records: Records, home: Home
) -> None:
    run = broken_run(records, error=BARE)
    write_log(home, run, long_log())
    client = served.client()
    page = client.get(f"/runs/{run.id}").text
    (to,) = re.findall(r'href="([^"]+)#first-error"', page)
    log = client.get(html.unescape(to)).text
    (line,) = re.findall(r'<div class="line error" id="first-error">(.*?)</div>', log)
    assert line.endswith(html.escape(FIRST))
    assert "header_4999.h" in log and "header_1.h" not in log
    # without a place it is the end that is shown
    assert FIRST not in html.unescape(client.get(f"/runs/{run.id}/log/alpha").text)


@pytest.mark.parametrize("at", ["1", "99999999999", "x", "-5"])
def test_a_place_that_is_no_line_of_the_log_marks_what_is_there(
    served: Served, records: Records, home: Home, at: str
) -> None:
    run = broken_run(records, error=BARE)
    write_log(home, run, "one\nerror: two\n")
    assert served.client().get(f"/runs/{run.id}/log/alpha?from=0&at={at}").status_code == 200


def test_a_step_that_was_killed_shows_its_last_lines_and_what_to_do(
    served: Served, records: Records, home: Home
) -> None:
    run = broken_run(records, "killed")
    write_log(home, run, "".join(f"[{number}/99] compiling\n" for number in range(60)))
    text = served.client().get(f"/runs/{run.id}").text
    assert telling(text)[-1] == "[59/99] compiling" and len(telling(text)) == AFTER
    assert "it did not end" in text and "build again" in text


def test_a_run_that_was_killed_before_its_first_step_says_so(served: Served, records: Records) -> None:
    run = a_run(outcome="killed", steps=())
    records.put(run)
    assert "stopped in the middle of it" in served.client().get(f"/runs/{run.id}").text


def test_every_step_that_failed_is_told(served: Served, records: Records) -> None:
    steps = tuple(a_step(name=name, outcome="failed", error=TOLD, log="") for name in ("alpha", "beta"))
    run = a_run(outcome="failed", steps=steps)
    records.put(run)
    text = served.client().get(f"/runs/{run.id}").text
    assert all(f"{name}: {html.escape(FIRST)}</h2>" in text for name in ("alpha", "beta"))


def test_the_next_step_names_the_step(served: Served, records: Records) -> None:
    run = broken_run(records, error=TOLD)
    assert "rocwright logs alpha shows the whole log" in served.client().get(f"/runs/{run.id}").text


def test_secrets_and_markup_in_these_lines_are_harmless(home: Home, records: Records) -> None:
    secret = "hunter2hunter2"
    served = serve_site(home, records, hidden=(secret,))
    run = broken_run(records, error=BARE)
    # a secret that the cut would go through is no longer found by its whole text
    wide = "x" * (WIDEST - 10)
    write_log(home, run, f"<script>one</script>\nfatal error: {secret}\n{wide}{secret}\n")
    text = served.client().get(f"/runs/{run.id}").text
    assert secret[:6] not in text and "<script>one" not in text
    assert "&lt;script&gt;one" in text and "fatal error: ***" in text


def test_a_log_that_is_gone_leaves_what_was_told(served: Served, records: Records) -> None:
    run = broken_run(records, error=TOLD | {"detail": "one\ntwo"})
    text = served.client().get(f"/runs/{run.id}").text
    assert telling(text) == ["one", "two"]
    assert "#first-error" not in text
