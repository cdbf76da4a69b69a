"""The pages of what is new upstream, and of the last cycle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from rocbase.errors import NetworkError
from rocwright.catalog.load import builtin_catalog
from rocwright.follow.cycle.model import Culprit, CycleTold, RowTold
from rocwright.follow.watch.kept import keep, kept
from rocwright.follow.watch.look import watch
from rocwright.follow.watch.model import Alarm, Caution, News, Silent, WatchReport
from rocwright.follow.watch.question import Question
from rocwright.follow.watch.upstream import Answer
from rocwright.home import Home
from rocwright.plan.resolve.model import Request
from rocwright.plan.resolve.settings import WatchSettings
from rocwright.records.read import Records
from tests.making import lock_of
from tests.web.serving import Served, a_run

EVIL = "<script>alert('x')</script>"
AT = "2026-01-02T00:00:00+00:00"


def news(lock: str, name: str, **more: object) -> News:
    said: dict[str, object] = {"has": "1.0", "new": "1.1", "step": "minor", "source": "git", "admitted": True}
    return News.model_validate({"lock": lock, "name": name} | said | more)


def test_each_lock_keeps_its_own_part_of_the_last_look(home: Home) -> None:
    first = WatchReport(asked=3, seconds=1, news=(news("a", "hello"), news("b", "world")))
    keep(first, ["a", "b"], home, AT)
    keep(WatchReport(asked=1, seconds=1), ["a"], home, AT.replace("-02T", "-03T"))
    assert [(one.lock, [row.name for row in one.report.news]) for one in kept(home)] == [
        ("a", []),
        ("b", ["world"]),
    ]


class Deaf:
    """An upstream that never answers."""

    def __init__(self, home: Home, seconds: float) -> None: ...

    def ask(self, question: Question) -> Answer:
        raise NetworkError("no answer", cause="it is deaf", next_step="wait")


def test_whoever_looks_leaves_what_was_found(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocwright.follow.watch.look.Upstream", Deaf)
    lock = lock_of("llama-hip")
    report = watch({"one": lock, "other": lock}, WatchSettings(), builtin_catalog(), home)
    assert report.silent
    looks = kept(home)
    assert {one.lock for one in looks} == {"one", "other"}
    assert all(one.report.silent == report.silent for one in looks)


def test_a_kept_look_that_cannot_be_read_or_written_costs_nothing_else(home: Home) -> None:
    keep(WatchReport(asked=1, seconds=1), ["a"], home, AT)
    (path,) = (home.path / "watched").iterdir()
    path.write_text("{")
    assert kept(home) == []
    path.unlink()
    path.parent.rmdir()
    path.parent.write_text("in the way")
    keep(WatchReport(asked=1, seconds=1), ["a"], home, AT)
    assert kept(home) == []


def test_the_page_tells_alarms_news_and_who_did_not_answer(served: Served, home: Home) -> None:
    client = served.client()
    assert "Not checked yet" in client.get("/watch").text
    told = WatchReport(
        asked=4,
        seconds=2.5,
        alarms=(Alarm(lock=EVIL, name=EVIL, what="the tag v1 moved", had="a" * 40, now="b" * 40, kept="no"),),
        cautions=(Caution(lock=EVIL, name="pkg", what="it was withdrawn", why=EVIL, kept="whole"),),
        news=(
            news(EVIL, "hello", age=12, notes="https://notes.example/1.1", needless=("remedy x",)),
            news(EVIL, "young", admitted=False, why="2 days old", notes="javascript:alert(1)"),
        ),
        silent=(
            Silent(
                source="https://me:pass123@host.example/x",
                names=("world",),
                failure="fetch",
                what="no answer",
                cause=EVIL,
            ),
        ),
    )
    keep(told, [EVIL], home, AT)
    keep(WatchReport(asked=1, seconds=1), ["looked at later"], home, AT.replace("-02T", "-03T"))
    text = client.get("/watch").text
    assert EVIL not in text and escape(EVIL) in text
    assert "looked at later" in text.split("the tag v1 moved")[1]
    assert text.index("the tag v1 moved") < text.index("it was withdrawn") < text.index("Allowed")
    assert text.index("hello") < text.index("Held back") < text.index("2 days old") < text.index("***")
    assert 'href="https://notes.example/1.1"' in text and 'href="javascript' not in text
    assert "pass123" not in text and "12 d" in text and "remedy x" in text


def told_cycle(report: Path) -> CycleTold:
    request = Request(stack="tiny", gpu=("gfx1151",), base="debian:sid")
    culprit = Culprit(says=("hello 1.1 is at fault", EVIL), report=str(report))
    return CycleTold(
        id="one",
        started=AT,
        seconds=61,
        rows=(
            RowTold(
                request=request,
                state="failed",
                changes=(f"hello 1.0 -> 1.1 {EVIL}",),
                why="export MY_TOKEN=abc123",
                culprit=culprit,
            ),
            RowTold(
                request=request,
                state="promoted",
                promoted=("nightly",),
                waits={"known-good": "seen for 1 of 3 days"},
                run=a_run().id,
            ),
        ),
    )


@pytest.mark.parametrize("inside", [True, False])
def test_the_cycle_page_tells_states_changes_waits_and_culprits(
    served: Served, records: Records, home: Home, inside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = served.client()
    assert "No cycle has run" in client.get("/cycle").text
    folder = served.site.folder
    report = folder / "locks/tiny/failed/report.md" if inside else folder / "tokens.json"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(f"the whole story {EVIL}")
    told = told_cycle(report)
    monkeypatch.setattr("rocwright.web.following.last_cycle", lambda where, home: told)
    records.put(a_run(**going()))
    text = client.get("/cycle").text
    assert EVIL not in text and "abc123" not in text
    assert ("the whole story" in text) == inside
    for said in (
        "hello 1.0 -&gt; 1.1",
        "hello 1.1 is at fault",
        "seen for 1 of 3 days",
        "nightly",
        "Running",
    ):
        assert said in text
    assert f'href="/runs/{a_run().id}"' in text


def going() -> dict[str, Any]:
    return {"state": "running", "outcome": "", "origin": "cycle one"}


def test_the_page_of_a_farm_says_what_starts_one_where_there_is_none(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(served.site.home.path))
    client = served.client("read")
    assert "Steps run on this machine alone" in client.get("/farm").text
    (served.site.home.path / "config.toml").write_text('[farm]\nscheduler = "tls://127.0.0.1:9"\n')
    text = client.get("/farm").text
    assert "no coordinator answers at tls://127.0.0.1:9" in text
    assert "<title>no answer · Farm" in text
    assert served.client().get("/farm").status_code == (200 if served.site.access.open_ else 303)
