"""Answers of strangers: no longer in coming and no larger than they may be."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rocbase.errors import NetworkError
from rocbase.units import duration, size

if TYPE_CHECKING:
    import requests

# Bytes taken at once.
READ = 64 * 1024

# No page of an index, no list of files is larger; the largest known ones take some 40 MiB.
MOST_PAGE = 256 * 1024**2


# Seconds, and bytes that must come in them: an old modem brings five times as many.
WINDOW, LEAST_BYTES = 20.0, 20 * 1024


# Seconds that one read may take: a host can drip what is no part of a body, such as trailers of chunks.
LONGEST_READ = 90.0


@contextmanager
def _cut_off(answer: requests.Response, starts: list[float]) -> Iterator[None]:
    """Cut an answer off if a read, whose time is in `starts`, takes too long. Raises NetworkError then."""
    ended, late = threading.Event(), threading.Event()

    def watch() -> None:
        while not ended.wait(LONGEST_READ / 10):
            if any(time.monotonic() - since > LONGEST_READ for since in list(starts)):
                late.set()
                with suppress(OSError, ValueError, RuntimeError):
                    answer.raw.shutdown()
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        if late.is_set():
            raise _given_up(answer.url, f"one read took more than {duration(LONGEST_READ)}")


def pieces(answer: requests.Response) -> Iterator[bytes]:
    """Yield the body of an answer that was begun with `stream=True`, as it comes.

    Raises NetworkError if less than LEAST_BYTES come within WINDOW, and requests' own errors if the line
    breaks.
    """
    import requests
    from urllib3.exceptions import HTTPError

    instant = since = time.monotonic()
    received = 0
    starts = [instant]
    try:
        with _cut_off(answer, starts):
            while chunk := answer.raw.read1(READ, decode_content=True):
                starts.clear()
                yield chunk
                received += len(chunk)
                instant = time.monotonic()
                starts.append(instant)
                if instant - since > WINDOW:
                    if received < LEAST_BYTES:
                        raise _given_up(answer.url, f"{size(received)} came in {duration(instant - since)}")
                    since, received = instant, 0
    except (HTTPError, OSError) as error:
        raise requests.ConnectionError(error) from error


def read_whole(answer: requests.Response, seconds: float, limit: int = MOST_PAGE) -> bytes:
    """The body of an answer that was begun with `stream=True`.

    Raises NetworkError where it is larger than `limit` bytes or takes longer than `seconds` in all, and
    requests' own errors where the line breaks.
    """
    until = time.monotonic() + seconds
    body = bytearray()
    for chunk in pieces(answer):
        body += chunk
        if len(body) > limit:
            raise _given_up(answer.url, f"more than {size(limit)} received, and no end in sight")
        if time.monotonic() > until:
            raise _given_up(answer.url, f"it was still coming after {duration(seconds)}")
    return bytes(body)


def _given_up(url: str, cause: str) -> NetworkError:
    return NetworkError(
        f"gave up reading the response of {url[:200]}",
        cause=cause,
        next_step="check that address: its server does not behave like a package index or archive",
    )
