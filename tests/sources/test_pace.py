"""A host that drips its answer is given up, whatever it drips."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.sources.test_redirects import certificate

from rocbase.errors import FetchError, NetworkError
from rocwright.sources import bounded, session, web

HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
BODY = HEADERS + b"\r\n"
TRAILER = HEADERS + b"Transfer-Encoding: chunked\r\n\r\n4\r\ndata\r\n0\r\n"


@contextmanager
def dripping(begin: bytes, pem: Path | None) -> Iterator[str]:
    """Serve an answer that begins at once and goes on by a byte each tenth of a second."""
    ended = threading.Event()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if pem is not None:
        context.load_cert_chain(pem)

    def drip(line: socket.socket) -> None:
        with (
            suppress(OSError),
            line if pem is None else context.wrap_socket(line, server_side=True) as client,
        ):
            client.recv(65536)
            client.sendall(begin)
            for _ in range(250):
                if ended.wait(0.1):
                    break
                client.sendall(b"x")

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=drip, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield f"{'http' if pem is None else 'https'}://127.0.0.1:{server.getsockname()[1]}/file"
        ended.set()


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "HEADER_SECONDS", 0.5)
    monkeypatch.setattr(session, "TRIES", 1)
    monkeypatch.setattr(bounded, "WINDOW", 0.5)
    monkeypatch.setattr(bounded, "LONGEST_READ", 0.5)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("begin", [HEADERS, BODY, TRAILER], ids=["headers", "body", "trailer"])
def test_a_host_that_drips_is_given_up(
    tmp_path: Path, begin: bytes, tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem = certificate(tmp_path) if tls else None
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(pem or ""))
    reads: tuple[Callable[[str], object], ...] = (
        lambda url: web.download(url, tmp_path / "file"),
        lambda url: web.read_bytes(url, 60),
        *([lambda url: web.look(url, 60)] if begin == HEADERS else []),
    )
    for read in reads:
        began = time.monotonic()
        with dripping(begin, pem) as url, pytest.raises(NetworkError):
            read(url)
        assert time.monotonic() - began < 60


@pytest.mark.parametrize("status", ["302 Found\r\nLocation: /file", "503 Busy", "404 Gone"])
def test_nobody_waits_for_the_body_of_a_redirect_or_an_error(
    tmp_path: Path, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be read to its end, into memory."""
    monkeypatch.setattr(session, "TRIES", 2)
    began = time.monotonic()
    answer = f"HTTP/1.1 {status}\r\n\r\n".encode()
    with dripping(answer, None) as url, pytest.raises((NetworkError, FetchError)):
        web.download(url, tmp_path / "file")
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    "header",
    [f"Content-Length: {'9' * 5000}", f"Last-Modified: 1 Jan {'9' * 20} 0:0:0 Z"],
    ids=["size", "time"],
)
def test_numbers_without_end_are_no_sizes_and_no_times(header: str) -> None:
    with dripping(f"HTTP/1.1 200 OK\r\n{header}\r\n\r\n".encode(), None) as url:
        assert web.look(url, 60) == web.Standing(there=True)
