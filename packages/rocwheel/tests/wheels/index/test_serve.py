"""The built-in server: pages, wheels, and what it does not give away."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rocwheel.files.atomic import sha256_file
from rocwheel.home import Home
from rocwheel.wheels.index.pages import HTML, JSON
from rocwheel.wheels.index.response_cache import Again
from rocwheel.wheels.index.serve import app
from rocwheel.wheels.index.shelf import Shelf
from rocwheel.wheels.index.yanks import yank
from rocwheel_samples.index_making import anchors, make_wheel

pytestmark = pytest.mark.timing

BIG = bytes(range(256)) * 4096


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    make_wheel(folder, "Plain_One")
    make_wheel(folder / "deeper", "kernels", "1.0+one", targets=("gfx1030",))
    make_wheel(folder, "kernels", "1.0+two", targets=("gfx1151",))
    (tmp_path / "secret").write_text("nobody may read this")
    return folder


@contextmanager
def client_of(folder: Path, home: Home, said: list[str] | None = None) -> Iterator[TestClient]:
    shelf = Shelf(folder, home)
    shelf.look()
    made = app(shelf, (said if said is not None else []).append)
    with TestClient(made, base_url="http://index", follow_redirects=False) as client:
        yield client


@pytest.fixture
def client(wheels: Path, home: Home) -> Iterator[TestClient]:
    with client_of(wheels, home) as client:
        yield client


def link(client: TestClient, project: str, view: str = "", number: int = 0) -> str:
    """The address of a file, from its project's page."""
    place = f"/{view}/simple/{project}/" if view else f"/simple/{project}/"
    files = client.get(place, headers={"accept": JSON}).json()["files"]
    return urljoin(place, str(files[number]["url"]))


def test_a_page_comes_in_the_form_that_is_asked_for(client: TestClient) -> None:
    as_json = client.get("/simple/plain-one/", headers={"accept": JSON})
    assert as_json.headers["content-type"] == JSON
    as_html = client.get("/simple/plain-one/", headers={"accept": HTML})
    assert as_html.headers["content-type"] == HTML
    for_browsers = client.get("/simple/plain-one/", headers={"accept": "*/*"})
    assert for_browsers.headers["content-type"].startswith("text/html")
    assert {one.headers["vary"] for one in (as_json, as_html, for_browsers)} == {"Accept"}
    ((address, _, name),) = anchors(as_html.text)
    (file,) = as_json.json()["files"]
    assert (address, name) == (f"{file['url']}#sha256={file['hashes']['sha256']}", file["filename"])
    assert client.get("/simple/plain-one/", headers={"accept": "image/png"}).status_code == 406


def test_files_are_what_their_pages_say(client: TestClient) -> None:
    for view in ("", "/gfx1151"):
        page = client.get(f"{view}/simple/kernels/", headers={"accept": JSON}).json()
        for file in page["files"]:
            address = urljoin(f"{view}/simple/kernels/", file["url"])
            got = client.get(address)
            assert hashlib.sha256(got.content).hexdigest() == file["hashes"]["sha256"]
            assert "immutable" in got.headers["cache-control"]
            metadata = client.get(address + ".metadata")
            assert hashlib.sha256(metadata.content).hexdigest() == file["core-metadata"]["sha256"]


def test_views_hold_what_is_for_their_gpu(client: TestClient) -> None:
    page = client.get("/gfx1151/simple/kernels/", headers={"accept": JSON}).json()
    assert page["versions"] == ["1.0+two"]
    assert client.get("/gfx1151/simple/plain-one/").status_code == 200
    assert "gfx1030, gfx1151" in client.get("/gfx803/simple/").text
    listed = client.get("/gfx1030/simple/", headers={"accept": JSON}).json()["projects"]
    assert [one["name"] for one in listed] == ["kernels", "plain-one"]
    assert "gfx1030/simple/" in client.get("/").text


def test_names_lead_to_their_normalised_form(client: TestClient) -> None:
    for asked, meant in {
        "/simple": "/simple/",
        "/simple/Plain_One/": "/simple/plain-one/",
        "/simple/Plain.One": "/simple/plain-one",
        "/simple/plain-one": "/simple/plain-one/",
        "/gfx1151/simple/KERNELS": "/gfx1151/simple/kernels",
    }.items():
        got = client.get(asked)
        assert got.status_code == 301
        assert urljoin(asked, got.headers["location"]).rstrip("/") == meant.rstrip("/")
    assert client.get("/simple/Plain_One", follow_redirects=True).status_code == 200


def test_what_is_not_there_is_told(client: TestClient) -> None:
    absent = client.get("/simple/absent/")
    assert (absent.status_code, "no wheel of absent" in absent.text) == (404, True)
    assert client.get("/nothing").status_code == 404
    assert client.get("/files/00/x.whl").status_code == 404


def test_a_project_without_code_for_a_gpu_says_for_which_it_has(wheels: Path, home: Home) -> None:
    make_wheel(wheels, "lonely", targets=("gfx1100",))
    with client_of(wheels, home) as client:
        got = client.get("/gfx1151/simple/lonely/")
    assert got.status_code == 404
    assert "its wheels are for: gfx1100" in got.text


def test_what_has_not_changed_is_not_sent_again(client: TestClient) -> None:
    for address in ("/", "/simple/", "/simple/kernels/", link(client, "kernels")):
        first = client.get(address)
        again = client.get(address, headers={"if-none-match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert client.get(address, headers={"if-none-match": '"other"'}).status_code == 200


def test_head_says_what_get_would(client: TestClient) -> None:
    for address in ("/", "/simple/", link(client, "kernels"), link(client, "kernels") + ".metadata"):
        got, head = client.get(address), client.head(address)
        assert head.content == b""
        assert dict(head.headers) == dict(got.headers)
        assert int(head.headers["content-length"]) == len(got.content)


def test_ranges_put_together_are_the_file(wheels: Path, home: Home) -> None:
    path = make_wheel(wheels, "big", files={"big/data": hashlib.sha256(BIG).digest() * 30_000})
    data = path.read_bytes()
    middle = len(data) // 3
    with client_of(wheels, home) as client:
        address = link(client, "big")
        etag = client.get(address).headers["etag"]
        first = client.get(address, headers={"range": f"bytes=0-{middle}"})
        rest = client.get(address, headers={"range": f"bytes={middle + 1}-", "if-range": etag})
        assert (first.status_code, rest.status_code) == (206, 206)
        assert first.headers["content-range"] == f"bytes 0-{middle}/{len(data)}"
        assert first.content + rest.content == data
        other = client.get(address, headers={"range": "bytes=5-", "if-range": '"other"'})
        assert (other.status_code, other.content == data) == (200, True)
        past = client.get(address, headers={"range": f"bytes={len(data)}-"})
        assert (past.status_code, past.headers["content-range"]) == (416, f"bytes */{len(data)}")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(client: TestClient, method: str) -> None:
    for address in ("/", "/simple/", "/simple/kernels/", link(client, "kernels")):
        assert client.request(method, address, content=b"data").status_code == 405


PIECES = st.sampled_from(
    ["..", ".", "simple", "files", "gfx1151", "kernels", "secret", "%2e%2e", "..\\", "\0", "etc", "", "~"]
)


def ask(made: ASGIApp, path: str) -> tuple[int, dict[bytes, bytes], bytes]:
    """What the application answers to a path just as it is, which no client would send so."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [],
        "server": ("index", 80),
        "client": ("client", 1),
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    async def call() -> None:
        await made(scope, receive, send)

    anyio.run(call)
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(one.get("body", b"") for one in sent)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(PIECES | st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=8))
def test_no_path_leads_out_of_the_index(wheels: Path, home: Home, pieces: list[str]) -> None:
    shelf = Shelf(wheels, home)
    shelf.look()
    made = app(shelf)
    sha256 = sha256_file(wheels / "Plain_One-1.0-py3-none-any.whl")
    for before in ("/", f"/files/{sha256}/", f"/files/{sha256}/../../"):
        status, headers, body = ask(made, before + "/".join(pieces))
        assert status in (200, 301, 404)
        assert b"nobody may read this" not in body
        assert status != 301 or re.fullmatch(rb"simple/|(\.\./)?[a-z0-9-]+/", headers[b"location"])


def test_a_file_that_became_a_link_is_not_followed(wheels: Path, home: Home, tmp_path: Path) -> None:
    with client_of(wheels, home) as client:
        address = link(client, "plain-one")
        path = wheels / "Plain_One-1.0-py3-none-any.whl"
        path.unlink()
        path.symlink_to(tmp_path / "secret")
        got = client.get(address)
        assert got.status_code == 404
        assert "nobody" not in got.text


def test_the_same_request_is_answered_from_memory_until_a_look_finds_more(wheels: Path, home: Home) -> None:
    shelf = Shelf(wheels, home)
    shelf.look()
    inner, asked = app(shelf, log=False), []
    assert isinstance(inner, Again)

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope["path"])
        await inner.inner(scope, receive, send)

    client = TestClient(Again(counted, lambda: shelf.revision), base_url="http://index")
    tag = client.get("/simple/").headers["etag"]
    for headers, status in (
        ({}, 200), ({"accept": JSON}, 200), ({"if-none-match": tag}, 304), ({"accept": "image/png"}, 406)
    ):  # fmt: skip
        asked.clear()
        first, again = (client.get("/simple/", headers=headers) for _ in range(2))
        assert first.status_code == status and first.content == again.content
        assert first.headers == again.headers
        assert len(asked) == (2 if status == 406 else 1 if headers else 0)
        assert client.get("/simple/?more", headers=headers).status_code == status
        assert client.head("/simple/", headers=headers).content == b""
    for headers in ({"authorization": "Basic eDp4"}, {"cookie": "x" * 5000}):
        asked.clear()
        assert {client.get("/simple/", headers=headers).status_code for _ in range(2)} == {200}
        assert len(asked) == 2
    make_wheel(wheels, "fresh")
    shelf.look()
    assert "fresh" in client.get("/simple/").text


def test_new_files_are_seen_without_a_new_start(wheels: Path, home: Home) -> None:
    said: list[str] = []
    with client_of(wheels, home, said) as client:
        old = client.get("/simple/").headers["etag"]
        make_wheel(wheels, "fresh")
        yank(wheels, "kernels", "1.0+one", "wrong")
        (wheels / "bad-1.0-py3-none-any.whl").write_bytes(b"")
        until = time.monotonic() + 30
        while client.get("/simple/fresh/").status_code != 200 and time.monotonic() < until:
            time.sleep(0.05)
        assert client.get("/simple/").headers["etag"] != old
        files = client.get("/simple/kernels/", headers={"accept": JSON}).json()["files"]
        assert [one.get("yanked") for one in files] == ["wrong", None]
        assert client.get(link(client, "fresh")).status_code == 200
    assert [line for line in said if line.startswith("left out")] == [
        "left out  bad-1.0-py3-none-any.whl: "
        "cannot read bad-1.0-py3-none-any.whl as a wheel: it has no directory; "
        "build the file again, or get a fresh copy"
    ]


def test_pages_that_are_kept_are_bounded(wheels: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocwheel.wheels.index.shelf.MOST_MEMORY", 3000)
    shelf = Shelf(wheels, home)
    shelf.look()
    for view in ("", "gfx1030", "gfx1151"):
        for project in ("", "kernels", "plain-one"):
            assert shelf.page(view, project, JSON)
            assert shelf.held <= 3000


def test_many_threads_ask_while_files_come(wheels: Path, home: Home) -> None:
    shelf = Shelf(wheels, home)
    shelf.look()
    wrong: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(50):
                assert shelf.page("", "kernels", JSON)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(5):
        make_wheel(wheels, "kernels", f"2.{number}")
        shelf.look()
    for thread in threads:
        thread.join()
    assert not wrong
    page = shelf.page("", "kernels", JSON)
    assert page is not None and b"2.4" in page.body


def test_the_log_has_one_printable_line_a_request(wheels: Path, home: Home) -> None:
    said: list[str] = []
    with client_of(wheels, home, said) as client:
        address = link(client, "plain-one")
        client.get(address, headers={"range": "bytes=5-9"})
        client.get("/simple/%1b%5b31m\N{BELL}/")
    assert said[1] == f"GET {address} 206 5 bytes=5-9"
    assert len(said) == 3
    assert all(line.isprintable() and line.isascii() for line in said)
