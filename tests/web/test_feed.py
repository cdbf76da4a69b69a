"""The feed of changes: valid Atom, with names that stay, for whoever may read."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from datetime import datetime
from urllib.parse import urlsplit
from xml.parsers import expat

import pytest

from rocwright.config import Config
from rocwright.follow.notify.ledger import write
from rocwright.follow.notify.look import LookOrder, look
from rocwright.follow.notify.model import Ledger, StateChange
from rocwright.home import Home
from rocwright.records.read import Records
from tests.web.serving import HOST, Served, a_run, a_step, serve_site

A = "{http://www.w3.org/2005/Atom}"


@pytest.fixture(autouse=True)
def here(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWRIGHT_HOME", str(home.path))


def breaks(records: Records, home: Home, number: int = 2, error: str = "it does not compile") -> str:
    """A row that passed breaks; gives the id of the run."""
    ident = f"20260101T00000{number}.000000Z-00000{number}"
    step = a_step(outcome="failed", error={"class": "compile", "message": error})
    records.put(a_run(ident, outcome="failed", failure="compile", steps=(step,), stack=f"tiny{number}"))
    look(home, Config(), LookOrder())
    return ident


def parsed(served: Served) -> ElementTree.Element:
    answer = served.client().get("/feed.atom")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/atom+xml"
    strict = expat.ParserCreate(namespace_separator=" ")
    strict.Parse(answer.content, True)
    return ElementTree.fromstring(answer.content)


def check(feed: ElementTree.Element) -> None:
    """What RFC 4287 asks of a feed and of each entry (4.1.1, 4.1.2)."""
    assert feed.tag == f"{A}feed"
    for part in (feed, *feed.findall(f"{A}entry")):
        for name in ("id", "title", "updated"):
            [found] = part.findall(f"{A}{name}")
            assert found.text
        assert urlsplit(part.findtext(f"{A}id", "")).scheme == "urn"
        assert datetime.fromisoformat(part.findtext(f"{A}updated", "")).tzinfo is not None
        assert len([one for one in part.findall(f"{A}link") if one.get("rel") == "alternate"]) == 1
        for link in part.findall(f"{A}link"):
            assert urlsplit(link.get("href", "")).netloc
    assert feed.findtext(f"{A}author/{A}name")
    assert len(feed.findall(f"{A}link[@rel='self']")) == 1
    idents = [one.text for one in feed.iter(f"{A}id")]
    assert len(idents) == len(set(idents))


def test_the_feed_is_valid_before_and_after_something_changed(
    served: Served, records: Records, home: Home
) -> None:
    check(parsed(served))
    look(home, Config(), LookOrder())
    check(parsed(served))
    runs = [breaks(records, home, number) for number in (2, 3)]
    feed = parsed(served)
    check(feed)
    first, second = feed.findall(f"{A}entry")
    assert first.findtext(f"{A}title") == "broken: tiny3_gfx1151_debian-sid"
    assert second.findtext(f"{A}title") == "broken: tiny2_gfx1151_debian-sid"
    assert [link.get("href") for link in first.findall(f"{A}link")] == [f"{HOST}/runs/{runs[1]}"]
    assert "it does not compile" in first.findtext(f"{A}content", "")
    assert first.find(f"{A}category[@term='broken']") is not None
    assert served.client().get(f"/runs/{runs[1]}").status_code == 200


def test_the_names_of_entries_stay_whatever_comes(served: Served, records: Records, home: Home) -> None:
    look(home, Config(), LookOrder())
    breaks(records, home)
    before = parsed(served)
    breaks(records, home, 3)
    after = parsed(serve_site(home, records))
    assert before.findtext(f"{A}id") == after.findtext(f"{A}id")
    assert before.findtext(f"{A}entry/{A}id") == after.findall(f"{A}entry")[1].findtext(f"{A}id")


def test_what_a_compiler_says_stays_text(home: Home, records: Records) -> None:
    look(home, Config(), LookOrder())
    breaks(records, home, error="<script>&amp; \x1b[31m \x00 \ud7ff ]]> swordfish")
    served = serve_site(home, records, hidden=("swordfish",))
    feed = parsed(served)
    check(feed)
    content = feed.findtext(f"{A}entry/{A}content", "")
    assert "<script>&amp;" in content
    assert "swordfish" not in content


def test_what_no_xml_can_hold_is_replaced(home: Home, served: Served) -> None:
    change = StateChange(
        id="1" * 32,
        kind="broken",
        subject="x",
        at="2026-01-01T00:00:00Z",
        headline="\x00\x1b[31m",
        detail=("\x08",),
    )
    write(home, Ledger(since="2026-01-01T00:00:00Z", changes=(change,)))
    check(parsed(served))


def test_a_feed_reader_gives_a_token_as_its_password(home: Home, records: Records) -> None:
    closed = serve_site(home, records, open_=False)
    client = closed.client()
    for path in ("/feed.atom", "/metrics"):
        refused = client.get(path)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Basic")
        assert client.get(path, auth=("me", "wrong")).status_code == 401
        assert client.get(path, auth=("me", closed.site.access.first)).status_code == 200
        assert closed.client("read").get(path).status_code == 200
    page = closed.client("read").get("/")
    assert '<link rel="alternate" type="application/atom+xml"' in page.text
