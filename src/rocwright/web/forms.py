"""What a form sent: names and values, no files, and never much."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

MOST_BYTES, MOST_FIELDS = 16 * 1024, 40


async def fields(request: Request) -> dict[str, str]:
    """The fields of a form. Raises HTTPException where it is none, or too large."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "a form without files is needed")
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > MOST_BYTES:
            raise HTTPException(413, "the form is too large")
    try:
        return dict(parse_qsl(data.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError as error:
        raise HTTPException(400, "the form is not one of this server") from error
