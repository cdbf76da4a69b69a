"""The package index of `rocwright serve`: pages, wheels, and what it does not give away."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urljoin

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message

from rocbase.files.atomic import sha256_file
from rocwheel.wheels.index.look import Look, look
from rocwheel.wheels.index.model import Wheel
from rocwheel.wheels.index.pages import HTML, JSON
from rocwheel.wheels.index.yanks import yank
from rocwheel_samples.index_making import anchors, make_wheel
from rocwright.home import Home
from rocwright.records.opening import read_records
from rocwright.web.access import Access, Tokens
from rocwright.web.index import Index
from rocwright.web.site import Site
from tests.web.serving import until

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


def made_of(folder: Path, home: Home, said: list[str] | None = None) -> tuple[Index, ASGIApp]:
    """The application with the index alone, which everybody may read."""
    records, access = read_records(home), Access(Tokens(home.tokens), True)
    site = Site(home=home, records=records, access=access, folder=folder)
    index = Index(folder, home, (said if said is not None else []).append)
    index.look()
    return index, Starlette(routes=index.routes(site))


def client_of(folder: Path, home: Home) -> TestClient:
    return TestClient(made_of(folder, home)[1], base_url="http://index", follow_redirects=False)


@pytest.fixture
def client(wheels: Path, home: Home) -> TestClient:
    return client_of(wheels, home)


def link(client: TestClient, project: str, view: str = "", number: int = 0) -> str:
    """The address of a file, from its project's page."""
    place = f"/{view}/simple/{project}/" if view else f"/simple/{project}/"
    files = client.get(place, headers={"accept": JSON}).json()["files"]
    return urljoin(place, str(files[number]["url"]))


def test_a_page_comes_in_the_form_that_is_asked_for(client: TestClient) -> None:
    pip, uv, browser = (
        f"{JSON}, {HTML}; q=0.1, text/html; q=0.01",
        f"{JSON}, {HTML};q=0.2, text/html;q=0.01",
        "text/html,application/xhtml+xml,*/*;q=0.8",
    )
    for accept in (pip, uv, "application/vnd.pypi.simple.latest+json"):
        as_json = client.get("/simple/plain-one/", headers={"accept": accept})
        assert as_json.headers["content-type"] == JSON
    for accept in (browser, "*/*", HTML):
        as_html = client.get("/simple/plain-one/", headers={"accept": accept})
        assert as_html.headers["content-type"] == "text/html; charset=utf-8"
    assert {one.headers["vary"] for one in (as_json, as_html)} == {"Accept"}
    ((address, _, name),) = anchors(as_html.text)
    (file,) = as_json.json()["files"]
    assert (address, name) == (f"{file['url']}#sha256={file['hashes']['sha256']}", file["filename"])


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


def test_names_lead_to_their_normalised_form(client: TestClient) -> None:
    for asked, meant in {
        "/simple": "/simple/",
        "/simple/Plain_One/": "/simple/plain-one/",
        "/simple/plain-one": "/simple/plain-one/",
        "/gfx1151/simple/KERNELS/": "/gfx1151/simple/kernels/",
    }.items():
        got = client.get(asked)
        assert got.status_code in (301, 307)
        assert urljoin(f"http://index{asked}", got.headers["location"]) == f"http://index{meant}"
    assert client.get("/simple/Plain.One", follow_redirects=True).status_code == 200


def test_what_is_not_there_is_told(client: TestClient) -> None:
    absent = client.get("/simple/absent/")
    assert (absent.status_code, "no such project" in absent.text) == (404, True)
    assert client.get("/nothing").status_code == 404
    assert client.get("/files/00/x.whl").status_code == 404


def test_what_has_not_changed_is_not_sent_again(client: TestClient) -> None:
    for address in ("/simple/", "/simple/kernels/", link(client, "kernels")):
        first = client.get(address)
        again = client.get(address, headers={"if-none-match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert client.get(address, headers={"if-none-match": '"other"'}).status_code == 200


def test_head_says_what_get_would(client: TestClient) -> None:
    for address in ("/simple/", link(client, "kernels"), link(client, "kernels") + ".metadata"):
        got, head = client.get(address), client.head(address)
        assert dict(head.headers) == dict(got.headers)
        assert int(head.headers["content-length"]) == len(got.content)


def test_ranges_put_together_are_the_file(wheels: Path, home: Home) -> None:
    path = make_wheel(wheels, "big", files={"big/data": hashlib.sha256(BIG).digest() * 30_000})
    data = path.read_bytes()
    middle = len(data) // 3
    client = client_of(wheels, home)
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
    for address in ("/simple/", "/simple/kernels/", link(client, "kernels")):
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
    _, made = made_of(wheels, home)
    sha256 = sha256_file(wheels / "Plain_One-1.0-py3-none-any.whl")
    for before in ("/", f"/files/{sha256}/", f"/files/{sha256}/../../"):
        status, headers, body = ask(made, before + "/".join(pieces))
        assert status in (200, 301, 307, 404)
        assert b"nobody may read this" not in body
        assert status != 301 or re.fullmatch(rb"\.\./[a-z0-9-]+/", headers[b"location"])
        assert status != 307 or headers[b"location"].startswith(b"http://index/")


def test_a_file_that_became_a_link_is_not_followed(wheels: Path, home: Home, tmp_path: Path) -> None:
    client = client_of(wheels, home)
    address = link(client, "plain-one")
    path = wheels / "Plain_One-1.0-py3-none-any.whl"
    path.unlink()
    path.symlink_to(tmp_path / "secret")
    for ending in ("", ".metadata"):
        got = client.get(address + ending)
        assert got.status_code == 404
        assert "nobody" not in got.text


def test_new_files_are_seen_without_a_new_start(
    wheels: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwright.web.index.LEAST_WAIT", 0.01)
    said: list[str] = []
    index, made = made_of(wheels, home, said)
    client = TestClient(made, base_url="http://index")
    old = client.get("/simple/").headers["etag"]
    index.start()
    fresh = make_wheel(wheels.parent, "fresh")
    fresh.rename(wheels / fresh.name)
    yank(wheels, "kernels", "1.0+one", "wrong")
    (wheels / "bad-1.0-py3-none-any.whl").write_bytes(b"")
    until(lambda: client.get("/simple/fresh/").status_code == 200 and bool(said))
    index.stop()
    assert client.get("/simple/").headers["etag"] != old
    files = client.get("/simple/kernels/", headers={"accept": JSON}).json()["files"]
    assert [one.get("yanked") for one in files] == ["wrong", None]
    assert client.get(link(client, "fresh")).status_code == 200
    assert said == [
        "left out  bad-1.0-py3-none-any.whl: "
        "cannot read bad-1.0-py3-none-any.whl as a wheel: it has no directory; "
        "build the file again, or get a fresh copy"
    ]


def test_a_wheel_that_is_being_written_is_not_called_wrong(
    wheels: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwright.web.index.LEAST_WAIT", 0.01)
    said: list[str] = []
    index, made = made_of(wheels, home, said)
    whole = make_wheel(wheels.parent, "fresh")
    half = wheels / whole.name
    half.write_bytes(whole.read_bytes()[:100])

    def look_and_write(folder: Path, known: Iterable[Wheel]) -> Look:
        found = look(folder, known)
        half.write_bytes(whole.read_bytes())
        return found

    monkeypatch.setattr("rocwright.web.index.look", look_and_write)
    index.start()
    client = TestClient(made, base_url="http://index")
    until(lambda: client.get("/simple/fresh/").status_code == 200)
    index.stop()
    assert said == []


def test_a_new_start_reads_no_wheel_again(wheels: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    made_of(wheels, home)
    monkeypatch.setattr("rocwheel.wheels.index.examine._examine", None)
    assert client_of(wheels, home).get("/gfx1151/simple/kernels/").status_code == 200
