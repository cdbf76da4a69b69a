"""What a server of this machine refuses before any page is asked: sizes, hosts, endless bodies."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from urllib.parse import urlsplit

import h11
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rocbase.http.address import checked
from rocwright.web.connection import CURRENT, Connection

# Bytes of a request's body, whatever it says of itself.
MOST_BODY = 64 * 1024

# Headers of a request, and bytes of its path and query.
MOST_HEADERS, MOST_TARGET = 100, 8 * 1024

LOOPBACK = ("localhost", "127.0.0.1", "::1")

_HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::[0-9]{0,5})?")
_CLOSE = (b"connection", b"close")
_SIZE = re.compile(rb"[0-9]{1,20}")


class RequestLimits:
    """Lets only what is within bounds through to `inner`, and tells the connection how far a request is.

    `names`: the host names that the server answers to beside addresses of the loopback; empty: any.
    """

    def __init__(self, inner: ASGIApp, names: Collection[str] = ()) -> None:
        self._inner = inner
        self._names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        connection = CURRENT.get()
        turned_away = connection is not None and connection.turned_away
        refusal = _NO_ROOM if turned_away else refusal_of(scope, self._names)
        answer = refusal or self._inner
        if connection is not None:
            connection.begun()
        try:
            if _has_body(scope):
                body = _Body(receive, send, connection)
                await answer(scope, body.receive, body.send)
            else:
                if connection is not None:
                    connection.whole()
                await answer(scope, receive, send)
        finally:
            if connection is not None:
                connection.answered()


class _Body:
    """The body of one request as it comes. What is answered before it is whole closes the connection."""

    def __init__(self, receive: Receive, send: Send, connection: Connection | None) -> None:
        self._receive, self._send, self._connection = receive, send, connection
        self._size, self._whole = 0, False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            if self._size > MOST_BODY:
                raise HTTPException(413, _TOO_LARGE)
            if not message.get("more_body"):
                self._whole = True
                if self._connection is not None:
                    self._connection.whole()
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if self._connection is not None:
                self._connection.responding()
            if not self._whole and _CLOSE not in message["headers"]:
                message["headers"] = [*message["headers"], _CLOSE]
        try:
            await self._send(message)
        except h11.ProtocolError:
            # where the body turned out to be none, the client was told so, and nobody hears this answer
            if self._connection is None or not self._connection.closing:
                raise


def refusal_of(scope: Scope, names: Collection[str]) -> PlainTextResponse | None:
    """Why a request is refused for its head alone; None where it is not."""
    headers, version = scope["headers"], scope["http_version"]
    if version not in ("1.0", "1.1"):
        return _refused(505, "this server speaks HTTP/1.1")
    if len(headers) > MOST_HEADERS:
        return _refused(431, f"a request may have at most {MOST_HEADERS} headers")
    if len(scope["raw_path"]) + len(scope["query_string"]) > MOST_TARGET:
        return _refused(414, f"an address may have at most {MOST_TARGET} bytes")
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) > 1 or not all(map(_is_host, hosts)):
        return _refused(400, "a request names one host, once: Host: NAME or NAME:PORT")
    if names and not goes_by(hosts[0].decode() if hosts else "", names):
        return _refused(403, WRONG_NAME)
    present = {name for name, _ in headers}
    if b"transfer-encoding" in present and (b"content-length" in present or version == "1.0"):
        return _refused(400, "the length of the body was given in two ways")
    for name, value in headers:
        if name == b"content-length" and (not _SIZE.fullmatch(value) or int(value) > MOST_BODY):
            return _refused(413, _TOO_LARGE)
    return None


def goes_by(host: str, names: Collection[str]) -> bool:
    """Whether a Host header is an address of the loopback, or one of these names."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or name in names or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _is_host(value: bytes) -> bool:
    try:
        return bool(_HOST.fullmatch(value) and checked(f"//{value.decode()}"))
    except ValueError:
        return False


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0"))
        for name, value in scope["headers"]
    )


def _refused(status: int, says: str, **headers: str) -> PlainTextResponse:
    safe = {"connection": "close", "x-content-type-options": "nosniff"}
    return PlainTextResponse(f"{says}\n", status, safe | headers)


WRONG_NAME = "this server does not answer to that host name; start it with --name NAME to allow it"
_TOO_LARGE = f"the body of a request may have at most {MOST_BODY} bytes"
_NO_ROOM = _refused(503, "too many clients: try again in a few seconds", **{"retry-after": "5"})
