"""Answers over HTTP that a client may have already: files, whole or in part, and pages."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Mapping
from io import BufferedReader

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from rocbase.files.atomic import sha256_bytes

_RANGE = re.compile(r"bytes=[ \t]*(\d{0,18})-(\d{0,18})[ \t]*", re.ASCII)

# Bytes of a file that are in memory for one client.
CHUNK = 256 * 1024


def sent(request: Request, file: BufferedReader, size: int, etag: str, extra: Mapping[str, str]) -> Response:
    """An open file, or the part of it that is asked for, or 304; it is closed at the end."""
    headers = {"etag": etag, "accept-ranges": "bytes", **extra}
    if names(request.headers.get("if-none-match", ""), etag):
        file.close()
        return Response(status_code=304, headers=headers)
    range_header = request.headers.get("range", "")
    if request.headers.get("if-range", etag) != etag:
        range_header = ""
    try:
        part = span(range_header, size)
    except ValueError:
        file.close()
        return Response(status_code=416, headers=headers | {"content-range": f"bytes */{size}"})
    begin, end = part or (0, size)
    headers |= {"content-length": str(end - begin), "content-type": "application/octet-stream"}
    if part:
        headers["content-range"] = f"bytes {begin}-{end - 1}/{size}"
    status = 206 if part else 200
    if request.method == "HEAD":
        file.close()
        return Response(status_code=status, headers=headers)
    return _Part(file, begin, end, status, headers)


def page(request: Request, body: bytes, media_type: str, extra: Mapping[str, str]) -> Response:
    """A page, or 304."""
    headers = {"etag": f'"{sha256_bytes(body)[:32]}"', **extra}
    if names(request.headers.get("if-none-match", ""), headers["etag"]):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media_type, headers=headers)


class _Part(StreamingResponse):
    """Bytes `begin` to `end` of a file, which is closed at the end, whatever the client does."""

    def __init__(
        self, file: BufferedReader, begin: int, end: int, status: int, headers: Mapping[str, str]
    ) -> None:
        super().__init__(self._chunks(file, begin, end), status, headers)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()

    @staticmethod
    async def _chunks(file: BufferedReader, begin: int, end: int) -> AsyncIterator[bytes]:
        while begin < end:
            data = await run_sync(os.pread, file.fileno(), min(CHUNK, end - begin), begin)
            if not data:
                raise OSError("the file was truncated while it was being sent")
            begin += len(data)
            yield data


def span(header: str, size: int) -> tuple[int, int] | None:
    """The first byte that a Range header asks for, and the one after the last; None where all is to be sent.

    What is no range of bytes, or several of them, asks for nothing in particular (RFC 9110, 14.2). Raises
    ValueError where a file of `size` bytes has none of them.
    """
    match = _RANGE.fullmatch(header)
    if not match or not any(match.groups()):
        return None
    first, last = match.groups()
    begin, end = (int(first), int(last) + 1 if last else size) if first else (max(0, size - int(last)), size)
    if first and last and end <= begin:
        return None
    if begin >= size:
        raise ValueError(header)
    return begin, min(end, size)


def names(header: str, etag: str) -> bool:
    """Whether an If-None-Match header names an entity tag, weakly compared."""
    tags = {tag.strip().removeprefix("W/") for tag in header.split(",")}
    return "*" in tags or etag in tags
