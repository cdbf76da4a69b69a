"""Any bytes as what a client sends to a server: the protocol, the limits and the pages, without a socket."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import uvicorn
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rocwheel_samples.index_making import make_wheel
from rocwright.home import Home
from rocwright.records.opening import open_records
from rocwright.web.access import Access, Tokens
from rocwright.web.app import app
from rocwright.web.index import Index
from rocwright.web.limits import MOST_BODY, MOST_HEADERS, MOST_TARGET
from rocwright.web.server import settings
from rocwright.web.site import Site
from tests.web.serving import a_run, write_log

_FAULT = re.compile(rb"^HTTP/1\.1 (?!505)5..", re.MULTILINE)


def speak(data: bytes) -> None:
    """A client that sends this, in pieces as its first byte says, and goes: nothing is raised anywhere, and
    no page sees what is out of bounds."""
    if data:
        speaker = _speaker()
        speaker.loop.run_until_complete(speaker.speak(data[1:], 1 + data[0] * 8))


def seeds() -> Mapping[str, bytes]:
    """Sound clients."""
    form = b"Content-Type: application/x-www-form-urlencoded\r\n"
    host = b"Host: localhost\r\n"
    get = b"GET %b HTTP/1.1\r\n" + host + b"\r\n"
    chunked = b"POST /enter HTTP/1.1\r\n" + host + form + b"Transfer-Encoding: chunked\r\n\r\n"
    old = b"GET /simple/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    addresses = (
        b"/runs?before=7", b"/artifacts/" + b"0" * 64, b"/runs/run/log/alpha?from=9", b"/static/site.css",
        b"/runs/run/log/alpha/live?from=3", b"/runs/run/live", b"/compare?first=run&second=run", b"/",
        b"/enter?token=a&to=/runs", b"/cell?stack=s", b"/simple/project/", b"/trends?stack=tiny", b"/queue",
        b"/issues?words=cmake", b"/gpu/gfx1151", b"/runs/run/lock", b"/watch", b"/cycle", b"/files/0/a.whl",
    )  # fmt: skip
    more = {
        "continue": b"Expect: 100-continue",
        "upgrade": b"Connection: upgrade\r\nUpgrade: websocket",
        "password": b"Authorization: Basic eDp5\r\nCookie: rocwright=a",
        "range": b"Range: bytes=1-2\r\nAccept: a/b;q=0.1, text/html\r\nIf-None-Match: *",
        "proxy": b"X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https",
        "origin": b"Origin: http://localhost\r\nSec-Fetch-Site: same-origin",
    }
    return {
        **{f"get-{number}": b"\xff" + get % one for number, one in enumerate(addresses)},
        **{name: b"\xff" + chunked[:-2] + one + b"\r\n\r\n1\r\na\r\n0\r\n\r\n" for name, one in more.items()},
        "pipeline": b"\xff" + get % b"/simple/" * 3,
        "post": b"\x01POST /enter HTTP/1.1\r\n" + host + form + b"Content-Length: 7\r\n\r\ntoken=a",
        "chunked": b"\x02" + chunked + b"7;a=b\r\ntoken=a\r\n0\r\nx: y\r\n\r\n",
        "old": b"\xff" + old,
    }


class _Speaker:
    """A server of pages and wheels that is handed bytes."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda _, context: self.wrong.append(context))
        self.wrong: list[object] = []
        self.waits = False
        self._kept = ExitStack()
        folder = Path(self._kept.enter_context(tempfile.TemporaryDirectory(prefix="rocwright-fuzz-")))
        home, wheels = Home(folder / "home"), folder / "rocwright-out"
        make_wheel(wheels, "project")
        index = Index(wheels, home, lambda line: None)
        index.look()
        records = self._kept.enter_context(open_records(home))
        run = a_run("run")
        records.put(run)
        write_log(home, run, "a line\n" * 9)
        access = Access(Tokens(home.tokens), open_=True)
        site = Site(home=home, records=records, access=access, folder=folder, hidden=())
        self._config = settings(self._watched(app(site, ("localhost",), index=index)), 10)
        self._state = uvicorn.Server(self._config).server_state

    async def speak(self, data: bytes, step: int) -> None:
        made: Any = self._config.http_protocol_class
        wire = _Wire()
        protocol = wire.protocol = made(config=self._config, server_state=self._state, app_state={})
        protocol.connection_made(wire)
        for at in range(0, len(data), step):
            if wire.closed:
                break
            protocol.data_received(data[at : at + step])
            await self._settled()
        # it goes, whatever is being answered
        wire.close()
        await asyncio.sleep(0)
        for _ in range(2000):
            if not self._state.tasks:
                break
            await asyncio.sleep(0.001)
        assert not self._state.tasks, "a page goes on for nobody"
        assert not self._state.connections
        assert not self.wrong, self.wrong
        assert not _FAULT.search(bytes(wire.sent)), bytes(wire.sent)

    async def _settled(self) -> None:
        for _ in range(2000):
            await asyncio.sleep(0)
            if not self._state.tasks or self.waits:
                return
            await asyncio.sleep(0.0002)

    def _watched(self, inner: ASGIApp) -> ASGIApp:
        async def watch(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                names = [name for name, _ in scope["headers"]]
                assert names.count(b"host") <= 1 and len(names) <= MOST_HEADERS
                assert not {b"content-length", b"transfer-encoding"} <= {*names}
                assert len(scope["raw_path"]) + len(scope["query_string"]) <= MOST_TARGET
            size = 0

            async def heard() -> Message:
                nonlocal size
                self.waits = True
                try:
                    message = await receive()
                finally:
                    self.waits = False
                size += len(message.get("body", b""))
                assert size <= MOST_BODY
                return message

            try:
                await inner(scope, heard, send)
            except ClientDisconnect:
                raise
            except Exception as error:
                self.wrong.append(repr(error))
                raise

        return watch


class _Wire(asyncio.Transport):
    """What the server writes to; it takes everything."""

    def __init__(self) -> None:
        super().__init__()
        self.protocol: Any = None
        self.sent, self.closed = bytearray(), False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self.closed:
            self.sent += data

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str, default: object = None) -> object:
        places = {"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 80)}
        return places.get(name, default)

    def pause_reading(self) -> None:
        """Bytes come all the same: those of one read were under way."""

    def resume_reading(self) -> None:
        """See pause_reading."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()


@cache
def _speaker() -> _Speaker:
    return _Speaker()
