"""Answers of a hub: no larger and no longer in coming than a page may be, unless they are a model's file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rocbase.errors import FetchError
from rocbase.files.bounds import MIB
from rocbase.units import duration, size

if TYPE_CHECKING:
    import httpx2

MOST_ANSWER, LONGEST_ANSWER = 8 * MIB, 120.0
"""Bytes and seconds of a page: a repository of 10,000 files has a page of 2 MiB."""

OF_A_FILE = ("accept", "application/octet-stream")
"""Header of a request whose answer goes to a file that has a bound of its own."""


def bound_answers() -> None:
    """Bound the answers that huggingface_hub reads whole: pages, redirects and errors."""
    import httpx2
    from huggingface_hub import set_client_factory
    from huggingface_hub.utils._http import default_client_factory

    class Bounded(httpx2.SyncByteStream):
        def __init__(self, response: httpx2.Response) -> None:
            assert isinstance(response.stream, httpx2.SyncByteStream)
            self._inner, self._until = response.stream, time.monotonic() + LONGEST_ANSWER

        def __iter__(self) -> Iterator[bytes]:
            came = 0
            for chunk in self._inner:
                came += len(chunk)
                if came > MOST_ANSWER:
                    raise _refused(f"more than {size(MOST_ANSWER)} came, and no end in sight")
                if time.monotonic() > self._until:
                    raise _refused(f"it was still coming after {duration(LONGEST_ANSWER)}")
                yield chunk

        def close(self) -> None:
            self._inner.close()

    def bound(response: httpx2.Response) -> None:
        name, value = OF_A_FILE
        if response.request.method == "HEAD":
            return
        if response.is_success and response.request.headers.get(name) == value:
            return
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise _refused("it is compressed, which was not asked for")
        response.stream = Bounded(response)

    def client() -> httpx2.Client:
        made = default_client_factory()
        made.headers["accept-encoding"] = "identity"  # a bound on bytes of the wire is one on memory
        made.event_hooks = made.event_hooks | {"response": [bound]}
        return made

    set_client_factory(client)


def _refused(cause: str) -> FetchError:
    return FetchError(
        "gave up reading an answer of the hub",
        cause=cause,
        next_step="check HF_ENDPOINT: it must name a hub",
    )
