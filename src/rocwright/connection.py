"""A connection to a server of this machine: what its client must do in time, and how many there may be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from starlette.responses import PlainTextResponse
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

REQUEST_SECONDS = 20.0
"""In which a request must be there whole, from its first byte or the beginning of the connection."""

MOST_HEAD = 64 * 1024
"""Bytes of a request's head that does not end."""

PATIENCE = 60.0
"""Seconds in which a client must take what waits for it; one that does not is left."""

FIRST_SECONDS = 1.0
"""In which a new client need not make room for another."""

SPARE = 256
"""Connections beyond the most, for those who are told that there is no room."""

_NO_ROOM: Any = PlainTextResponse(
    "there is no room for more clients: ask again in a few seconds\n",
    503,
    {"retry-after": "5", "connection": "close", "x-content-type-options": "nosniff"},
)


class Room:
    """The connections of one server: at most so many, and since when each waits for a request (seconds of the
    loop), the oldest first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.waiting: dict[Connection, float] = {}


class Connection(HttpToolsProtocol):
    """Speaks HTTP as uvicorn does, within bounds of time and memory.

    Where there is no room for a new client, the one that has waited longest without asking for anything makes
    room; where all are being answered, the new one is told to come again.
    """

    room: Room

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._request = _Alarm(self.loop, REQUEST_SECONDS, self._too_slow)
        self._taken = _Alarm(self.loop, PATIENCE, self._abort)
        self._head = -1
        """Bytes of the head that has begun; -1: none has."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))
        if len(self.connections) > self.room.most:
            self._make_room()
        self._wait()
        self._request.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.room.waiting.pop(self, None)
        self._request.stop()
        self._taken.stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head >= 0:
            self._head += len(data)
            if self._head > MOST_HEAD:
                self._refuse(b"431 Request Header Fields Too Large")
        if self in self.room.waiting:
            self._request.set()

    def on_message_begin(self) -> None:
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head = -1
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        # what is answered before it is whole ends with the time that it has
        if not self.cycle.response_complete:
            self.room.waiting.pop(self, None)
            self._request.stop()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._leave()
        elif self.cycle.response_complete:
            self._wait()

    def timeout_keep_alive_handler(self) -> None:
        self._leave()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taken.set()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._taken.stop()

    def _wait(self) -> None:
        self.room.waiting.pop(self, None)
        self.room.waiting[self] = self.loop.time()

    def _make_room(self) -> None:
        oldest, since = next(iter(self.room.waiting.items()), (None, 0.0))
        if oldest is not None and since + FIRST_SECONDS <= self.loop.time():
            del self.room.waiting[oldest]
            oldest.transport.abort()
        elif len(self.connections) > self.room.most + SPARE:
            self.transport.abort()
        else:
            self.app = _NO_ROOM

    def _too_slow(self) -> None:
        self._refuse(b"408 Request Timeout")

    def _refuse(self, status: bytes) -> None:
        """Close; say why where a request has begun and none is being answered."""
        begun = self._head >= 0 or (self.cycle is not None and not self.cycle.response_started)
        answering = self.cycle is not None and self.cycle.response_started != self.cycle.response_complete
        if begun and not answering and not self.transport.is_closing():
            self.transport.write(
                b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
        self._leave()

    def _abort(self) -> None:
        self.transport.abort()

    def _leave(self) -> None:
        """Close, and do not wait for ever until all is taken."""
        self.transport.close()
        self._taken.set()


class _Alarm:
    """Does something once, so many seconds after it was set, unless it is stopped."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, act: Callable[[], None]) -> None:
        self._loop, self._seconds, self._act = loop, seconds, act
        self._timer: asyncio.TimerHandle | None = None

    def set(self) -> None:
        """Begin to wait, unless it does."""
        if self._timer is None:
            self._timer = self._loop.call_later(self._seconds, self._act)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
