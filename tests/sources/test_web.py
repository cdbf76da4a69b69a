"""Files at an address, served here by a host that can misbehave."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256, sha512
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rocbase.errors import ExplainedError, FetchError, NetworkError
from rocwheel_samples.tables import each
from rocwright.catalog.address import ArchivePlace, Download, FileAddress
from rocwright.execution.fetch import fetch
from rocwright.home import Home
from rocwright.model.steps import ArchiveOrigin, FilePin
from rocwright.sources.session import MOST_WAIT, TRIES
from rocwright.sources.web import READ, download, find_file
from rocwright.store.local import LocalStore
from rocwright.store.model import verified

DATA = bytes(range(256)) * 4096


@dataclass
class Host:
    """A host of files, by path; `asked` are the requests that it saw, `cut` where its answers end early."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    status: int = 0
    cut: int = 0
    ranges: bool = True
    endless: bool = False
    busy: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)


@pytest.fixture
def host() -> Iterator[Host]:
    served = Host(files={"/a/thing-1.tar.gz": DATA})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append((self.path, self.headers.get("Range", "")))
            if self.path in served.moved:
                self.send_response(302)
                self.send_header("Location", served.moved[self.path])
                self.end_headers()
                return
            if served.busy:
                served.busy -= 1
                self.send_response(503)
                for name, value in served.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                return
            if served.status or self.path not in served.files:
                self.send_error(served.status or 404)
                return
            data, start = served.files[self.path], 0
            if served.ranges and (asked := self.headers.get("Range")):
                start = int(asked.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206 if start else 200)
            if not served.endless:
                self.send_header("Content-Length", str(len(data) - start))
            self.end_headers()
            if served.endless:
                data *= 4
            end = start + served.cut if served.cut else len(data)
            self.wfile.write(data[start:end])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_address[1]}/a/thing-1.tar.gz"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield served
    server.shutdown()
    server.server_close()


def test_a_host_that_is_busy_is_asked_again_later_and_later(
    host: Host, tmp_path: Path, waited: list[float]
) -> None:
    host.busy = TRIES - 1
    download(host.url, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == DATA
    assert waited == [2, 4], "the second try is made at once"


def test_a_host_is_asked_again_when_it_says_and_no_later_than_a_minute(
    host: Host, tmp_path: Path, waited: list[float]
) -> None:
    host.busy, host.headers = 1, {"Retry-After": "7"}
    download(host.url, tmp_path / "x")
    host.busy, host.headers = 1, {"Retry-After": "86400"}
    download(host.url, tmp_path / "x")
    assert waited == [7, MOST_WAIT]


def test_a_host_that_stays_busy_is_given_up_with_what_it_asks_for(
    host: Host, tmp_path: Path, waited: list[float]
) -> None:
    host.busy, host.headers = 100, {"Retry-After": "600"}
    with pytest.raises(NetworkError) as caught:
        download(host.url, tmp_path / "x")
    assert caught.value.cause == "the server answered with status 503, and asks to wait (Retry-After: 600)"
    assert len(host.asked) == TRIES


def test_between_two_tries_of_a_line_that_breaks_there_is_a_pause(
    host: Host, tmp_path: Path, waited: list[float]
) -> None:
    host.cut = 6 * READ
    download(host.url, tmp_path / "x")
    assert waited == [2]


def test_a_file_is_found_with_hash_and_size_and_kept(host: Host, store: LocalStore) -> None:
    pin = find_file(FileAddress(url=host.url), store)
    assert pin == FilePin(
        filename="thing-1.tar.gz",
        sha256=sha256(DATA).hexdigest(),
        size=len(DATA),
        origin=ArchiveOrigin(url=host.url),
    )
    assert verified(store, pin.sha256).read_bytes() == DATA


def test_what_the_catalog_or_an_earlier_lock_knows_is_not_fetched_twice(
    host: Host, store: LocalStore
) -> None:
    first = find_file(FileAddress(url=host.url), store)
    assert find_file(FileAddress(url=host.url, sha256=first.sha256), store) == first
    assert find_file(FileAddress(url=host.url), store, first.sha256) == first
    assert len(host.asked) == 1


@pytest.mark.parametrize("kind", ["sha256", "sha512"])
def test_a_file_that_is_not_what_the_catalog_says_is_refused_and_not_kept(
    host: Host, store: LocalStore, kind: str
) -> None:
    right = {"sha256": sha256(DATA).hexdigest(), "sha512": sha512(DATA).hexdigest()}
    wrong = right | {kind: right[kind][::-1]}
    with pytest.raises(FetchError, match="does not match the catalog") as caught:
        find_file(FileAddress(url=host.url, **wrong), store)
    assert kind in caught.value.cause
    assert list(store.local.files()) == []
    assert find_file(FileAddress(url=host.url, **right), store).size == len(DATA)


def test_a_line_that_breaks_is_taken_up_where_it_broke(host: Host, tmp_path: Path) -> None:
    host.cut = 6 * READ
    download(host.url, tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == DATA
    starts = [asked for _, asked in host.asked]
    assert starts == ["", f"bytes={host.cut}-", f"bytes={2 * host.cut}-"]


def test_a_host_that_always_breaks_off_is_given_up(host: Host, tmp_path: Path) -> None:
    host.cut, host.ranges = len(DATA) // 3, False
    with pytest.raises(NetworkError, match="cannot be downloaded"):
        download(host.url, tmp_path / "x")
    assert len(host.asked) == TRIES
    assert not (tmp_path / "x").exists()


def test_a_file_without_end_is_left_at_the_size_of_the_lock(host: Host, store: LocalStore) -> None:
    host.endless = True
    pin = FilePin(
        filename="thing-1.tar.gz", sha256="0" * 64, size=len(DATA), origin=ArchiveOrigin(url=host.url)
    )
    with pytest.raises(FetchError, match="is larger than expected"):
        fetch([pin], store, Home(store.path), store.path / "scratch", lambda _: None)
    assert list(store.local.files()) == []


@pytest.mark.parametrize("served", [DATA[:-1], DATA[:-1] + b"!", b""])
def test_a_file_that_is_not_the_one_of_the_lock_never_comes_into_the_store(
    host: Host, store: LocalStore, tmp_path: Path, served: bytes
) -> None:
    pin = find_file(FileAddress(url=host.url), LocalStore(tmp_path / "other"))
    host.files["/a/thing-1.tar.gz"] = served
    with pytest.raises(FetchError, match="does not match the lock"):
        fetch([pin], store, Home(tmp_path), tmp_path / "scratch", lambda _: None)
    assert list(store.local.files()) == []


def test_the_file_of_a_lock_comes_into_the_store(host: Host, store: LocalStore, tmp_path: Path) -> None:
    pin = find_file(FileAddress(url=host.url), LocalStore(tmp_path / "other"))
    fetch([pin], store, Home(tmp_path), tmp_path / "scratch", lambda _: None)
    assert verified(store, pin.sha256).read_bytes() == DATA


def test_an_address_that_sends_on_is_followed(host: Host, tmp_path: Path) -> None:
    host.moved["/old/thing-1.tar.gz"] = "/a/thing-1.tar.gz"
    download(host.url.replace("/a/", "/old/"), tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == DATA


def test_an_address_that_sends_on_for_ever_is_a_network_failure(host: Host, tmp_path: Path) -> None:
    host.moved["/a/thing-1.tar.gz"] = "/a/thing-1.tar.gz"
    with pytest.raises(NetworkError, match="cannot be downloaded"):
        download(host.url, tmp_path / "x")


@pytest.mark.parametrize(("status", "error"), [(404, FetchError), (410, FetchError), (503, NetworkError)])
def test_a_file_that_is_gone_and_a_host_that_fails_are_told_apart(
    host: Host, tmp_path: Path, status: int, error: type[ExplainedError]
) -> None:
    host.status = status
    with pytest.raises(error, match="thing-1") as caught:
        download(host.url, tmp_path / "x")
    assert f"the server answered with status {status}" in caught.value.cause


def test_a_host_that_is_not_there_is_a_network_failure(tmp_path: Path) -> None:
    with pytest.raises(NetworkError):
        download("http://127.0.0.1:1/x.tar.gz", tmp_path / "x")


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_mirror_in_a_folder_stands_in_for_the_host(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    (tmp_path / "thing-1.tar.gz").write_bytes(DATA)
    monkeypatch.setenv("ROCWRIGHT_MIRRORS", f"https://files.example/a/={scheme}{tmp_path}/")
    pin = find_file(FileAddress(url="https://files.example/a/thing-1.tar.gz"), store)
    assert pin.origin == ArchiveOrigin(url="https://files.example/a/thing-1.tar.gz")
    with pytest.raises(FetchError, match="the mirror has no other"):
        find_file(FileAddress(url="https://files.example/a/other.tar.gz"), store)


def test_a_mirror_on_another_host_stands_in_too(
    host: Host, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "ROCWRIGHT_MIRRORS", f"https://files.example/={host.url.removesuffix('thing-1.tar.gz')}"
    )
    assert find_file(FileAddress(url="https://files.example/thing-1.tar.gz"), store).size == len(DATA)


@each(
    "url",
    ["ftp://host/x", "file:///etc/passwd", "https://host", "https://host/", "https://host/a/", "/x", "-x"],
)
def test_what_is_no_address_of_a_file_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        ArchivePlace(url=url)


def test_a_download_needs_a_hash() -> None:
    with pytest.raises(ValueError, match="needs a sha256 or sha512"):
        Download(url="https://host/x", source="read")
