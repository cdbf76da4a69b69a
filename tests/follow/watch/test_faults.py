"""Upstreams that are slow, endless, moved or changed: what is told of each; nothing waits for ever."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from hashlib import sha256

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.follow.watch.answering import Upstream
from tests.follow.watch.conftest import Field, catalog_of, component, lock_with, python_lock, release

from rocwright.catalog.load import Catalog
from rocwright.catalog.provider import Shelf
from rocwright.follow.watch.model import ALARM_EXIT
from rocwright.follow.watch.tell import tell_report
from rocwright.model.steps import ArchiveOrigin, FilePin, IndexOrigin
from rocwright.plan.resolve.model import Lock, LockedComponent, LockedProvider
from rocwright.sources.listing import listed

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
    assert "was written again on 2026-11-20" in again.what
    upstream.pages.clear()
    (gone,) = field.look(hello(upstream), lock).cautions
    assert gone.what.endswith("no longer exists")


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
    assert "gave up reading" in silent.what


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


def scripted(*rows: tuple[str, str]) -> bytes:
    """A page as TheRock's build_tools/index_generation_s3_tar.py writes it: the list is in a script."""
    names = [
        {"name": name, "mtime": datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()}
        for name, day in rows
    ]
    script = f"const files = {json.dumps(names)};\nfunction applyFilter(fileList, filter) {{ return []; }}"
    return f'<html><head><script>\n{script}</script></head><body><ul id="x"></ul></body></html>'.encode()


def tarballs(url: str) -> Catalog:
    """The catalog with places of tarballs here: one of old, one of new releases, one of nightly builds."""
    catalog = catalog_of()
    shelves = (("final", ">=10", "new"), ("final", "<10", "old"), ("a", ">=7.15.0a0", "nightly"))
    provider = catalog.providers["therock-tarball"].model_copy(
        update={
            "versions": ("10.0.0", "7.14.0"),
            "shelf": tuple(
                Shelf.model_validate(
                    {
                        "releases": releases,
                        "versions": versions,
                        "archive": f"{url}/{place}/dist-{{family}}-{{version}}.tar.gz",
                        "listing": f"{url}/{place}/",
                        "source": "x",
                    }
                )
                for releases, versions, place in shelves
            ),
        }
    )
    return replace(catalog, providers={**catalog.providers, provider.name: provider})


def test_pages_that_list_tarballs_tell_newer_versions_and_their_days(
    upstream: Upstream, field: Field
) -> None:
    names = ["dist-gfx1151-7.14.0.tar.gz", "dist-gfx1151-7.14.1.tar.gz", "dist-gfx110X-all-7.15.0.tar.gz"]
    links = "".join(f'<a href="{name}">{name}</a>' for name in names)
    upstream.pages["/old/"] = (200, {}, f"<html>{links}</html>".encode())
    day = {"Last-Modified": "Sun, 01 Nov 2026 00:00:00 GMT"}
    upstream.pages["/old/dist-gfx1151-7.14.1.tar.gz"] = (200, day, b"")
    page = scripted(
        ("dist-gfx1151-10.0.0.tar.gz", "2026-08-26"), ("dist-gfx1151-tests-10.3.0.tar.gz", "2026-09-01")
    )
    upstream.pages["/new/"] = (200, {}, page)
    page = scripted(
        ("dist-gfx1151-7.14.2a20261101.tar.gz", "2026-11-01"), ("dist-gfx1150-7.15.0.tar.gz", "2026-11-01")
    )
    upstream.pages["/nightly/"] = (200, {}, page)
    lock = lock_with(rocm=LockedProvider(name="therock-tarball", version="7.14.0"))
    told = {
        take: [
            (one.name, one.new, one.age, one.pin)
            for one in field.look(tarballs(upstream.url), lock, take=take).news
        ]
        for take in ("stable", "all")
    }
    stable = [("rocm", "10.0.0", 87, "10.0.0"), ("rocm", "7.14.1", 20, "7.14.1 like 7.14.0")]
    assert told["stable"] == stable
    assert told["all"] == [*stable, ("rocm", "7.14.2a20261101", 20, "7.14.2a20261101 like 7.14.0")]


def test_wheels_of_rocm_are_looked_for_where_later_ones_are_kept(upstream: Upstream, field: Field) -> None:
    row = {"filename": "rocm-10.0.0.tar.gz", "url": "/x", "hashes": {}, "upload-time": "2026-08-26T00:00:00Z"}
    body = {"meta": {"api-version": "1.1"}, "name": "rocm", "versions": [], "files": [row]}
    kind = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
    upstream.pages["/new/rocm/"] = (200, kind, json.dumps(body).encode())
    catalog = catalog_of()
    shelves = tuple(
        Shelf(versions=versions, index=f"{upstream.url}/{place}", source="x")
        for versions, place in ((">=10", "new"), (">=7.14,<10", "old"), ("<7.14", "older"))
    )
    provider = catalog.providers["therock-wheels"].model_copy(update={"shelf": shelves})
    catalog = replace(catalog, providers={**catalog.providers, provider.name: provider})
    origin = IndexOrigin(project="rocm", version="7.14.0", index=f"{upstream.url}/old")
    pin = FilePin(filename="rocm-7.14.0.tar.gz", sha256="0" * 64, size=1, origin=origin)
    rocm = LockedProvider(name=provider.name, version="7.14.0", wanted=("rocm[devel]==7.14.0",), files=(pin,))
    report = field.look(catalog, lock_with(rocm=rocm))
    assert [(one.name, one.new, one.age) for one in report.news] == [("rocm", "10.0.0", 87)]
    assert [one.source for one in report.silent] == []
    assert [one.what for one in report.cautions] == [
        f"rocm on the package index {upstream.url}/old no longer exists"
    ]


@given(page=st.text() | st.text().map(lambda text: f"files = [{text}"))
@example('files = [{"name": "a", "mtime": 1e300}, {"name": 3}, 7, {"name": "b", "mtime": "x"}];')
@example('<a href="http://[">x</a>')
@example("files = " + "[" * 100_000)
def test_whatever_a_page_says_its_files_are_names(page: str) -> None:
    assert all(isinstance(name, str) for name in listed(page))
