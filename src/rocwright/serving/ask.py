"""Asks a running server something: does it answer, and in the shape that its recipe tells?"""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import socket
import struct
import threading
import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from rocbase.errors import CheckError
from rocbase.units import duration
from rocwright.catalog.server import FirstRequest
from rocwright.serving.model import ServerState
from rocwright.serving.sound import tone

_SECONDS = 600.0
# Bytes of an answer: a picture of 1024 points a side has at most 3 MiB, a third more in base64.
_LARGEST_ANSWER = 16 << 20

_EDGE = "rocwright-form-f3a1c2"


def ask(server: ServerState, request: FirstRequest, key: str = "") -> str:
    """The text of the answer; for a picture, what it is. Raises CheckError where there is none, or it has
    another shape."""
    kind, sent = posted(request)
    headers = {"Content-Type": kind} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        status, body = exchange(server.url, "POST", request.path, _SECONDS, sent, headers)
    except (OSError, http.client.HTTPException) as error:
        raise _silent(server, f"{request.path}: {error or type(error).__name__}") from error
    if status != http.client.OK:
        excerpt = body[:200].decode(errors="replace")
        raise _silent(server, f"{request.path} answered with status {status}: {excerpt}")
    try:
        answer = str(_value_at(json.loads(body), request.answer))
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise _silent(server, f"{request.path} answered without {request.answer}") from error
    return _picture(server, request, answer) if request.picture else answer


def exchange(
    url: str,
    method: str,
    path: str,
    seconds: float,
    sent: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    most: int = _LARGEST_ANSWER,
) -> tuple[int, bytes]:
    """Return the status and at most so many bytes of an answer, which must be there within so many seconds.

    Raises OSError and HTTPException.
    """
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=seconds)
    try:
        connection.connect()
        late = threading.Event()
        # a timeout of a socket is one for each byte, and a server may drip them
        clock = threading.Timer(seconds, partial(_hang_up, connection.sock, late))
        clock.daemon = True
        clock.start()
        try:
            connection.request(method, path, sent, headers or {})
            reply = connection.getresponse()
            answer = reply.status, reply.read(most)
        finally:
            clock.cancel()
    finally:
        connection.close()
    if late.is_set():
        raise TimeoutError(f"the answer was not whole after {duration(seconds)}")
    return answer


def _hang_up(line: socket.socket, late: threading.Event) -> None:
    late.set()
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def posted(request: FirstRequest) -> tuple[str, bytes]:
    """What is posted: its type, and its bytes."""
    if request.body:
        return "application/json", request.body.encode()
    return f"multipart/form-data; boundary={_EDGE}", _form(request.form, request.sound)


def _form(fields: Mapping[str, str], sound: str) -> bytes:
    """A form with a sound in it (RFC 7578)."""
    parts = [(f'name="{name}"', value.encode()) for name, value in fields.items()]
    parts.append((f'name="{sound}"; filename="sound.wav"\r\nContent-Type: audio/wav', tone()))
    sections = [
        f"--{_EDGE}\r\nContent-Disposition: form-data; {header}\r\n\r\n".encode() + value + b"\r\n"
        for header, value in parts
    ]
    return b"".join([*sections, f"--{_EDGE}--\r\n".encode()])


def _picture(server: ServerState, request: FirstRequest, text: str) -> str:
    try:
        data = base64.b64decode(text, validate=True)
        width, height = png_size(data)
    except ValueError as error:
        raise _silent(server, f"{request.path} answered with no picture: {error}") from error
    if f"{width}x{height}" != request.picture:
        raise _silent(
            server, f"a picture of {request.picture} was asked for, and one of {width}x{height} came"
        )
    return f"a picture of {width}x{height}, {len(data):,} bytes of PNG"


def _value_at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def _silent(server: ServerState, cause: str) -> CheckError:
    return CheckError(
        f"{server.name} runs, but did not answer as it should",
        cause=cause,
        next_step=f"rocwright logs {server.name}; rocwright stop {server.name} ends it",
    )


_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHUNK_OVERHEAD = 12  # bytes of an empty chunk


def png_size(data: bytes) -> tuple[int, int]:
    """Width and height. Raises ValueError for what is no PNG, is cut short, or has a chunk that changed."""
    if not data.startswith(_SIGNATURE):
        raise ValueError("it does not begin as a PNG")
    offset, size = len(_SIGNATURE), (0, 0)
    for number in itertools.count():
        if len(data) - offset < _CHUNK_OVERHEAD:
            raise ValueError("it is cut short")
        length = int.from_bytes(data[offset : offset + 4])
        kind, body = data[offset + 4 : offset + 8], data[offset + 8 : offset + 8 + length]
        if data[offset + 8 + length : offset + _CHUNK_OVERHEAD + length] != struct.pack(
            ">I", zlib.crc32(kind + body)
        ):
            raise ValueError(f"its chunk {number} is damaged")
        if number == 0:
            if kind != b"IHDR" or length < 8:
                raise ValueError("it does not say its size")
            size = (int.from_bytes(body[:4]), int.from_bytes(body[4:8]))
        if kind == b"IEND":
            return size
        offset += _CHUNK_OVERHEAD + length
    raise AssertionError("it ends with its data")
