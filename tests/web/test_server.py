"""What a server bears from its clients, over real sockets."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

import rocwright
from rocbase.errors import InputError
from rocbase.processes import run as process
from rocwheel_samples.tables import each
from rocwright.web import connection
from rocwright.web.server import serve, settings

pytestmark = pytest.mark.timing

GET = b"GET %b HTTP/1.1\r\nHost: here\r\n\r\n"
FORM = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 900\r\n\r\n"


class Answers:
    """`/hold` waits for its client to go, `/flood` sends much, all else says hello when it has the body."""

    def __init__(self) -> None:
        self.begun, self.ended = threading.Semaphore(0), threading.Semaphore(0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        if scope["path"] in ("/hold", "/flood"):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            self.begun.release()
            if scope["path"] == "/flood":
                for _ in range(64):
                    await send({"type": "http.response.body", "body": bytes(2**20), "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                pass
            self.ended.release()
            return
        while (await receive()).get("more_body"):
            pass
        await PlainTextResponse("hello")(scope, receive, send)


@contextmanager
def listening(
    made: Answers, most_clients: int = 10, names: tuple[str, ...] = ()
) -> Iterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        server = uvicorn.Server(settings(made, most_clients, names))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        yield bound.getsockname()
        server.should_exit = True
        thread.join(10)


def ask(place: tuple[str, int], path: bytes = b"/") -> socket.socket:
    """A client that has asked for it."""
    client = socket.create_connection(place, timeout=60)
    client.sendall(GET % path)
    return client


def rest(client: socket.socket) -> bytes:
    """All that comes until the server closes."""
    told = b""
    with client, contextlib.suppress(ConnectionResetError):
        while more := client.recv(65536):
            told += more
    return told


@pytest.mark.parametrize(
    ("asked", "more", "says"),
    [
        pytest.param(b"", b"", b"", id="nothing"),
        pytest.param(b"GET / HT", b"", b"HTTP/1.1 408 ", id="a head without an end"),
        pytest.param(b"GET / HTTP/1.1\r\n", b"a: b\r\n", b"HTTP/1.1 408 ", id="a head that dribbles in"),
        pytest.param(FORM, b"", b"HTTP/1.1 408 ", id="a form without a body"),
        pytest.param(FORM, b"a", b"HTTP/1.1 408 ", id="a body that dribbles in"),
    ],
)
def test_a_request_must_be_whole_in_time(
    monkeypatch: pytest.MonkeyPatch, asked: bytes, more: bytes, says: bytes
) -> None:
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 0.3)
    with listening(Answers()) as place:
        client = socket.create_connection(place, timeout=60)
        client.sendall(asked)
        dribbling = threading.Event()

        def dribble() -> None:
            with contextlib.suppress(OSError):
                while more and not dribbling.wait(0.02):
                    client.sendall(more)

        thread = threading.Thread(target=dribble)
        thread.start()
        told = rest(client)
        dribbling.set()
        thread.join()
        assert told.startswith(says) and bool(told) == bool(says)


def test_a_connection_that_was_used_must_ask_in_time_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REQUEST_SECONDS", 0.3)
    with listening(Answers()) as place:
        client = ask(place)
        told = b""
        while not told.endswith(b"hello"):
            told += client.recv(65536)
        client.sendall(b"GET / HTTP/1.1\r\nHost:")
        assert rest(client).startswith(b"HTTP/1.1 408 ")


@each("size", [1, 7, 50, 1000])
def test_requests_are_answered_however_they_are_cut(size: int) -> None:
    asked = GET % b"/" + FORM + b"a" * 900 + GET % b"/" + b"GET / HTTP/1.0\r\n\r\n"
    with listening(Answers()) as place, socket.create_connection(place, timeout=60) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(asked), size):
            client.sendall(asked[at : at + size])
        assert rest(client).count(b"hello") == 4


def test_a_head_is_not_endless() -> None:
    begin = b"GET / HTTP/1.1\r\nlong: "
    with listening(Answers()) as place, socket.create_connection(place, timeout=60) as client:
        client.sendall(begin + b"x" * (connection.MOST_HEAD + 1 - len(begin)))
        assert rest(client).startswith(b"HTTP/1.1 400 ")


def test_a_client_that_takes_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PATIENCE", 0.3)
    made = Answers()
    with listening(made) as place, ask(place, b"/flood"):
        assert made.ended.acquire(timeout=60)


def test_where_all_are_answered_the_next_is_told_to_come_again() -> None:
    made = Answers()
    with listening(made, most_clients=2) as place:
        first, second = ask(place, b"/hold"), ask(place, b"/hold")
        assert made.begun.acquire(timeout=60) and made.begun.acquire(timeout=10)
        told = rest(ask(place)).lower()
        assert told.startswith(b"http/1.1 503 ") and b"retry-after: 5\r\n" in told
        first.close()
        assert made.ended.acquire(timeout=60)
        with ask(place) as third:
            assert third.recv(12) == b"HTTP/1.1 200"
        second.close()


def test_who_waits_makes_room_for_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_SECONDS", 0)
    with listening(Answers(), most_clients=2) as place:
        idle = [socket.create_connection(place, timeout=60) for _ in range(2)]
        with ask(place) as client:
            assert client.recv(12) == b"HTTP/1.1 200"
        assert rest(idle[0]) == b""
        idle[1].sendall(GET % b"/")
        assert idle[1].recv(12) == b"HTTP/1.1 200"
        idle[1].close()


def test_connections_are_bounded_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SPARE", 1)
    monkeypatch.setattr(connection, "FIRST_SECONDS", 60)
    with listening(Answers(), most_clients=1) as place:
        clients = [socket.create_connection(place, timeout=60) for _ in range(3)]
        assert rest(clients[2]) == b""
        clients[1].sendall(GET % b"/")
        assert rest(clients[1]).startswith(b"HTTP/1.1 503 ")
        clients[0].sendall(GET % b"/")
        assert clients[0].recv(12) == b"HTTP/1.1 200"
        clients[0].close()


HEAD = b"POST / HTTP/1.1\r\nHost: here\r\n"
BOTH = HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        pytest.param(b"GET /", b"x" * 65536, id="an address without an end"),
        pytest.param(HEAD + b"a: ", b"x" * 65536, id="a header without an end"),
        pytest.param(HEAD, b"a:b\r\n" * 10_000, id="headers without an end"),
        pytest.param(CHUNKED + b"1\r\na\r\n0\r\n", b"a:b\r\n" * 10_000, id="trailers without an end"),
        pytest.param(CHUNKED + b"1\r\na\r\n0\r\na:", b"x" * 65536, id="a trailer without an end"),
        pytest.param(CHUNKED + b"1;", b"x" * 65536, id="a chunk's extension without an end"),
        pytest.param(CHUNKED, b"1\r\na\r\n" * 10_000, id="chunks without an end"),
        pytest.param(CHUNKED + b"ffffffff\r\n", b"x" * 65536, id="a chunk without an end"),
        pytest.param(HEAD + b"Content-Length: 9999999999\r\n\r\n", b"x" * 65536, id="a body without an end"),
        pytest.param(HEAD + b"Content-Length: 1\r\n\r\n", b"x" * 65536, id="more than was said"),
    ],
)
def test_what_does_not_end_is_neither_kept_nor_read_on(begin: bytes, more: bytes) -> None:
    endless = 64 * 2**20
    with listening(Answers()) as place, socket.create_connection(place, timeout=60) as client:
        sent, at_first = 0, psutil.Process().memory_info().rss
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            client.sendall(begin)
            while sent < endless:
                client.sendall(more)
                sent += len(more)
        # what the system keeps of a connection is some MiB
        assert sent < endless / 2
        assert psutil.Process().memory_info().rss - at_first < endless / 4
        with ask(place) as another:
            assert another.recv(12) == b"HTTP/1.1 200"


def test_a_body_that_nobody_reads_is_not_kept() -> None:
    made = Answers()
    with listening(made) as place, socket.create_connection(place, timeout=60) as client:
        client.sendall(CHUNKED.replace(b"POST /", b"POST /flood"))
        assert made.begun.acquire(timeout=60)
        client.settimeout(1)
        at_first, sent = psutil.Process().memory_info().rss, 0
        with contextlib.suppress(OSError):
            while sent < 2**28:
                client.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                sent += 65536
        assert sent < 2**26
        assert psutil.Process().memory_info().rss - at_first < 2**26


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: here\r\nHost: there\r\n\r\n", 400, id="two hosts"),
        pytest.param(b"GET / HTTP/1.0\r\nHost: here\r\nHost: here\r\n\r\n", 400, id="two hosts in 1.0"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", 400, id="no host"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: \r\n\r\n", 400, id="an empty host"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: here\x01\r\n\r\n", 400, id="a host with a control character"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: he\tre\r\n\r\n", 400, id="a host with a tab"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a@localhost\r\n\r\n", 400, id="a host with a user"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: here,there\r\n\r\n", 400, id="hosts in one line"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: here/..\r\n\r\n", 400, id="a host with a path"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: \xc3\xa9\r\n\r\n", 400, id="a host that is not ASCII"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: [1.2]\r\n\r\n", 400, id="brackets without an IPv6 address"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: here:99999\r\n\r\n", 400, id="a port beyond the last"),
        pytest.param(HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\na", 400, id="two lengths"),
        pytest.param(HEAD + b"Content-Length: 1, 2\r\n\r\na", 400, id="two lengths in a line"),
        pytest.param(HEAD + b"Content-Length: -1\r\n\r\n", 400, id="a length below nothing"),
        pytest.param(HEAD + b"Content-Length: +1\r\n\r\na", 400, id="a length with a sign"),
        pytest.param(HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400, id="a coding"),
        pytest.param(HEAD + b"Content-Length : 1\r\n\r\na", 400, id="a space before a colon"),
        pytest.param(b"GET / HTTP/1.1\r\n Host: here\r\n\r\n", 400, id="a line that goes on from none"),
        pytest.param(b"GET / HTTP/1.1\nHost: here\r\nx: a\rb\r\n\r\n", 400, id="a return in a header"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: here\r\nx: a\0b\r\n\r\n", 400, id="a zero in a header"),
        pytest.param(CHUNKED + b"0x1\r\na\r\n0\r\n\r\n", 400, id="a chunk's size in C"),
        pytest.param(CHUNKED + b"1\r\nab\r\n0\r\n\r\n", 400, id="a chunk that is too long"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01", 400, id="TLS"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, id="HTTP/2"),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: here\r\n" + b"a: b\r\n" * 100 + b"\r\n", 431, id="many headers"
        ),
        pytest.param(b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: here\r\n\r\n", 414, id="a long address"),
        pytest.param(BOTH + b"0\r\n\r\n" + GET % b"/", 400, id="a length beside chunks"),
        pytest.param(BOTH.replace(b"/1.1", b"/1.0") + GET % b"/", 400, id="chunks in 1.0"),
        pytest.param(HEAD + b"Content-Length: 65537\r\n\r\n", 413, id="a large body"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(asked: bytes, status: int) -> None:
    made = Answers()
    with listening(made) as place, socket.create_connection(place, timeout=60) as client:
        client.sendall(asked)
        told = rest(client)
        assert told.startswith(b"HTTP/1.1 %d " % status)
        # nothing that came behind it was taken for a request
        assert told.count(b"HTTP/1.1 ") == 1


def test_a_trailer_that_is_none_behind_an_answer_ends_the_connection_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = Answers()
    with listening(made) as place:
        client = socket.create_connection(place, timeout=60)
        client.sendall(CHUNKED.replace(b"POST /", b"POST /hold"))
        assert made.begun.acquire(timeout=60)
        client.sendall(b"0\r\n\r\x00\n\r\n")
        rest(client)
        assert made.ended.acquire(timeout=60)
        with ask(place) as another:
            assert another.recv(12) == b"HTTP/1.1 200"
    assert not caplog.records


def test_a_server_on_the_loopback_goes_by_its_names_alone() -> None:
    with listening(Answers(), names=("builds.example",)) as place:
        for host, status in {
            b"localhost:1": 200, b"127.0.0.1": 200, b"[::1]:80": 200, b"Builds.Example": 200,
            b"elsewhere.example": 403, b"127.0.0.1.example": 403, b"localhost.example": 403,
        }.items():  # fmt: skip
            with socket.create_connection(place, timeout=60) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
                assert client.recv(12) == b"HTTP/1.1 %d" % status, host


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1", "no such host"])
def test_an_address_that_cannot_be_listened_on_is_told(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InputError, match="cannot listen"):
        serve(Answers(), host, taken.getsockname()[1], pytest.fail)


def test_the_next_request_waits_for_the_answer_and_is_not_kept_whole() -> None:
    made = Answers()
    with listening(made) as place, socket.create_connection(place, timeout=60) as client:
        client.sendall(GET % b"/hold")
        assert made.begun.acquire(timeout=60)
        client.settimeout(1)
        at_first, sent = psutil.Process().memory_info().rss, 0
        with contextlib.suppress(OSError):
            while sent < 2**28:
                sent += client.send((GET % b"/") * 1000)
        assert sent < 2**26
        assert psutil.Process().memory_info().rss - at_first < 2**26


def test_nothing_is_built_on_what_uvicorn_keeps_to_itself() -> None:
    """Whatever the server's protocol is called inside: only its public settings are used."""
    for path in Path(rocwright.__file__).parent.rglob("*.py"):
        assert "uvicorn.protocols" not in path.read_text(), path


@each(("soft", "hard", "room"), [(600, 10_000, "1000 2512"), (600, 700, "94 700"), (600, 512, "InputError")])
def test_files_are_made_room_for_as_far_as_may_be(soft: int, hard: int, room: str) -> None:
    words = f"""
import resource
from rocwright.web.server import room_for
resource.setrlimit(resource.RLIMIT_NOFILE, ({min(soft, hard)}, {hard}))
try:
    print(room_for(1000), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
except Exception as error:
    print(type(error).__name__)
"""
    assert process.run([sys.executable, "-c", words]).stdout.strip() == room
