"""Upstreams that are slow, endless, moved or changed: what is told of each; nothing waits for ever."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.watch.conftest import Field, catalog_of, component, lock_with, python_lock, release

from rocwright.catalog.load import Catalog
from rocwright.plan.model import ArchiveOrigin, FilePin, IndexOrigin
from rocwright.resolve.model import Lock, LockedComponent, LockedProvider
from rocwright.watch.model import ALARM_EXIT
from rocwright.watch.tell import tell_report


class Upstream:
    """A web server that answers as told: path -> (status, headers, body); `endless` never ends its body."""

    def __init__(self) -> None:
        self.url = ""
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.endless: set[str] = set()
        self.over = threading.Event()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    told = Upstream()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def _answer(self, *, body: bool) -> None:
            status, headers, data = told.pages.get(self.path, (404, {}, b""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(data)
            while body and self.path in told.endless and not told.over.wait(0.05):
                try:
                    self.wfile.write(b" ")
                except OSError:
                    return

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield told
    told.over.set()
    server.shutdown()
    server.server_close()


# files at an address

DATA = b"twelve bytes"


def archive_lock(upstream: Upstream, **more: object) -> Lock:
    pin = FilePin(
        filename="hello-1.0.tar.gz",
        sha256=sha256(DATA).hexdigest(),
        size=len(DATA),
        origin=ArchiveOrigin(url=f"{upstream.url}/hello-1.0.tar.gz"),
    )
    part = LockedComponent(name="hello", version="1.0", kind="archive", place="archive", files=(pin,))
    return lock_with(part, **more)


def hello(upstream: Upstream) -> Catalog:
    return catalog_of(component("hello", release("1.0", {"url": f"{upstream.url}/hello-1.0.tar.gz"})))


def stands(upstream: Upstream, **headers: str) -> None:
    told = {"Content-Length": str(len(DATA))} | {name.replace("_", "-"): one for name, one in headers.items()}
    upstream.pages["/hello-1.0.tar.gz"] = (200, told, DATA)


def test_a_file_that_stands_as_it_did_is_no_news(upstream: Upstream, field: Field) -> None:
    stands(upstream, Last_Modified="Wed, 01 Jan 2020 00:00:00 GMT")
    report = field.look(hello(upstream), archive_lock(upstream))
    assert (report.alarms, report.cautions, report.news) == ((), (), ())


def test_a_file_of_another_size_is_an_alarm(upstream: Upstream, field: Field) -> None:
    stands(upstream, Content_Length="13")
    report = field.look(hello(upstream), archive_lock(upstream))
    assert [(one.had, one.now) for one in report.alarms] == [("12 bytes", "13 bytes")]
    assert report.exit_code() == ALARM_EXIT


def test_a_file_that_was_written_again_or_taken_away_is_a_caution(upstream: Upstream, field: Field) -> None:
    stands(upstream, Last_Modified="Fri, 20 Nov 2026 00:00:00 GMT")
    lock = archive_lock(upstream)
    (again,) = field.look(hello(upstream), lock).cautions
    assert "was written once more, on 2026-11-20" in again.what
    upstream.pages.clear()
    (gone,) = field.look(hello(upstream), lock).cautions
    assert gone.what.endswith("is not there any more")


def test_a_file_is_looked_at_where_it_has_moved_to_but_not_in_circles(
    upstream: Upstream, field: Field
) -> None:
    lock = archive_lock(upstream)
    stands(upstream)
    upstream.pages["/elsewhere"] = upstream.pages["/hello-1.0.tar.gz"]
    upstream.pages["/hello-1.0.tar.gz"] = (302, {"Location": "/elsewhere"}, b"")
    assert not field.look(hello(upstream), lock).cautions
    upstream.pages["/elsewhere"] = (302, {"Location": "/elsewhere"}, b"")
    (silent,) = field.look(hello(upstream), lock).silent
    assert "TooManyRedirects" in silent.cause


# a package index


def test_an_answer_without_an_end_is_given_up(
    upstream: Upstream, field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"{upstream.url}/simple")
    kind = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
    upstream.pages["/simple/six/"] = (200, kind, b'{"files": [')
    upstream.endless.add("/simple/six/")
    origin = IndexOrigin(project="six", version="1.0")
    pin = FilePin(filename="six-1.0-py3-none-any.whl", sha256="0" * 64, size=1, origin=origin)
    (silent,) = field.look(catalog_of(), python_lock(pin), seconds=0.5).silent
    assert silent.names == ("six",)
    assert "was given up" in silent.what


def test_releases_younger_than_the_cool_down_are_held_back_by_the_day_of_their_upload(
    upstream: Upstream, field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"{upstream.url}/simple")
    rows = [
        {
            "filename": f"six-{version}-py3-none-any.whl",
            "url": "/x",
            "hashes": {"sha256": "0" * 64},
            "upload-time": f"{day}T00:00:00Z",
            "yanked": "it was broken" if version == "1.0" else False,
        }
        for version, day in (("1.0", "2026-01-01"), ("1.1", "2026-10-01"), ("1.2", "2026-11-20"))
    ]
    body = {"meta": {"api-version": "1.1"}, "name": "six", "versions": [], "files": rows}
    kind = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
    upstream.pages["/simple/six/"] = (200, kind, json.dumps(body).encode())
    origin = IndexOrigin(project="six", version="1.0")
    pin = FilePin(filename="six-1.0-py3-none-any.whl", sha256="0" * 64, size=1, origin=origin)
    report = field.look(catalog_of(), python_lock(pin))
    assert [(one.new, one.age, one.admitted) for one in report.news] == [("1.2", 1, False), ("1.1", 51, True)]
    assert [(one.what, one.why) for one in report.cautions] == [
        ("six-1.0-py3-none-any.whl was withdrawn (yanked)", "it was broken")
    ]
    assert "    held back: cool-down: 1 of 7 days" in tell_report(report)


# tarballs of a provider of ROCm


def test_a_page_that_lists_tarballs_tells_newer_versions_and_their_days(
    upstream: Upstream, field: Field
) -> None:
    catalog = catalog_of()
    provider = catalog.providers["therock-tarball"].model_copy(
        update={
            "versions": ("7.14.0",),
            "archive": f"{upstream.url}/dist-{{family}}-{{version}}.tar.gz",
            "listing": f"{upstream.url}/",
        }
    )
    catalog = replace(catalog, providers={**catalog.providers, provider.name: provider})
    rocm = LockedProvider(name=provider.name, version="7.14.0")
    names = [
        f"dist-{family}-{version}.tar.gz"
        for family, version in (("gfx1151", "7.14.0"), ("gfx1151", "7.14.1"), ("gfx110X-all", "7.15.0"))
    ]
    page = "".join(f'<a href="{name}">{name}</a>' for name in names)
    upstream.pages["/"] = (200, {}, f"<html>{page}</html>".encode())
    day = {"Last-Modified": "Sun, 01 Nov 2026 00:00:00 GMT"}
    upstream.pages["/dist-gfx1151-7.14.1.tar.gz"] = (200, day, b"")
    (news,) = field.look(catalog, lock_with(rocm=rocm)).news
    assert (news.name, news.new, news.age) == ("rocm", "7.14.1", 20)
    assert news.pin == "7.14.1 like 7.14.0"
