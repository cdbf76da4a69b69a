"""Answers of strangers: no longer in coming and no larger than they may be."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rocwheel.errors import NetworkError
from rocwheel.units import duration, size

if TYPE_CHECKING:
    import requests

READ = 64 * 1024
"""Bytes taken at once."""

MOST_PAGE = 256 * 1024**2
"""No page of an index, no list of files is larger; the largest known ones take some 40 MiB."""


def read_whole(answer: requests.Response, seconds: float, most: int = MOST_PAGE) -> bytes:
    """The body of an answer that was begun with `stream=True`.

    Raises NetworkError where it is larger than `most` bytes or takes longer than `seconds` in all, and
    requests' own errors where the line breaks.
    """
    import requests
    from urllib3.exceptions import HTTPError

    until = time.monotonic() + seconds
    body = bytearray()
    try:
        while chunk := answer.raw.read1(READ, decode_content=True):
            body += chunk
            if len(body) > most:
                raise _given_up(answer.url, f"more than {size(most)} received, and no end in sight")
            if time.monotonic() > until:
                raise _given_up(answer.url, f"it was still coming after {duration(seconds)}")
    except (HTTPError, OSError) as error:
        raise requests.ConnectionError(error) from error
    return bytes(body)


def _given_up(url: str, cause: str) -> NetworkError:
    return NetworkError(
        f"gave up reading the response of {url[:200]}",
        cause=cause,
        next_step="check that address: its server does not behave like a package index or archive",
    )
