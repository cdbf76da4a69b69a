"""A connection to a server of this machine: what its client must do in time, and how many there may be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, cast

import h11

# In which a request must be there whole, counted from the beginning of the connection or from the end of the
# last answer.
REQUEST_SECONDS = 20.0

# Bytes of a head, of a chunk's first line or of trailers that do not end.
MOST_HEAD = 64 * 1024

# Seconds in which a client must take what waits for it; one that does not is left.
PATIENCE = 60.0

# In which a new client need not make room for another.
FIRST_SECONDS = 1.0

# Connections beyond the most, for those who are told that there is no room.
SPARE = 256


class ConnectionBudget:
    """The connections of one server: at most so many, and since when each waits for a request (seconds of the
    loop), the oldest first."""

    def __init__(self, limit: int) -> None:
        self.most = limit
        self.all: set[Connection] = set()
        self.waiting: dict[Connection, float] = {}


class Connection(asyncio.Protocol):
    """Stands between the transport and the server's own protocol, `speaks`, and bounds the client's time.

    It calls nothing of `speaks` but what every asyncio.Protocol has. RequestLimits tells it of the requests.
    Where there is no room for a new client, the one that has waited longest without asking for anything makes
    room; where all are being answered, the new one is told to come again.
    """

    room: ConnectionBudget
    speaks: Callable[..., asyncio.Protocol]

    def __init__(self, *args: Any, **named: Any) -> None:
        self._inner = type(self).speaks(*args, **named)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._request = _Alarm(self._loop, REQUEST_SECONDS, self._too_slow)
        self._taken = _Alarm(self._loop, PATIENCE, self._abort)
        self._asked = self._responding = False
        """Whether bytes of a request have come, and whether its answer has begun."""
        self._requests = 0
        self.turned_away = False
        """Whether there was no room for it: it is told so, whatever it asks for."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.room.all.add(self)
        self._inner.connection_made(transport)
        if len(self.room.all) > self.room.most:
            self._make_room()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self.room.all.discard(self)
        self.room.waiting.pop(self, None)
        self._request.stop()
        self._taken.stop()
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._asked = True
        # the tasks that answer what is in it find the connection in their context
        token = CURRENT.set(self)
        try:
            self._inner.data_received(data)
        except h11.ProtocolError:
            # it cannot be told that what follows its request is none, where that was answered already
            self._transport.abort()
        finally:
            CURRENT.reset(token)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()
        self._taken.set()

    def resume_writing(self) -> None:
        self._inner.resume_writing()
        if not self._transport.is_closing():
            self._taken.stop()

    @property
    def closing(self) -> bool:
        """Whether nothing more goes to the client."""
        return self._transport.is_closing()

    def begun(self) -> None:
        """The head of a request is there."""
        self._requests += 1

    def whole(self) -> None:
        """All of a request is there."""
        self.room.waiting.pop(self, None)
        self._request.stop()

    def responding(self) -> None:
        """The answer has begun."""
        self._responding = True

    def answered(self) -> None:
        """A request is done with."""
        self._requests -= 1
        if self._transport.is_closing():
            self._leave()
        elif self._requests == 0:
            self._asked = self._responding = False
            self._request.stop()
            self._wait()

    def _wait(self) -> None:
        self.room.waiting.pop(self, None)
        self.room.waiting[self] = self._loop.time()
        self._request.set()

    def _make_room(self) -> None:
        oldest, since = next(iter(self.room.waiting.items()), (None, 0.0))
        if oldest is not None and since + FIRST_SECONDS <= self._loop.time():
            del self.room.waiting[oldest]
            oldest._abort()
        elif len(self.room.all) > self.room.most + SPARE:
            self._abort()
        else:
            self.turned_away = True

    def _too_slow(self) -> None:
        """Close; say why where a request has begun and none is being answered."""
        if self._asked and not self._responding and not self._transport.is_closing():
            self._transport.write(
                b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
        self._leave()

    def _abort(self) -> None:
        self._transport.abort()

    def _leave(self) -> None:
        """Close, and do not wait for ever until all is taken."""
        self._transport.close()
        self._taken.set()


# The connection that a request came over, in the task that answers it.
CURRENT: ContextVar[Connection | None] = ContextVar("CURRENT", default=None)


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
