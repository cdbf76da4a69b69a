"""Answers of a hub: no larger and no slower than a page may be; a file may be large, and not slow."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rocbase.errors import FetchError
from rocbase.files.bounds import MIB
from rocbase.units import duration, size
from rocwright.sources.bounded import LEAST_BYTES, WINDOW

if TYPE_CHECKING:
    import httpx2

# Bytes and seconds of a page: a repository of 10,000 files has a page of 2 MiB.
MOST_ANSWER, LONGEST_ANSWER = 8 * MIB, 120.0

# Header of a request whose answer goes to a file that has a bound of its own.
OF_A_FILE = ("accept", "application/octet-stream")


# Seconds that may pass until the next bytes of a body: a host can drip what is no part of one.
LONGEST_READ = 90.0


class _Watch:
    """Closes a client that has waited too long for the head or the next bytes of its answer."""

    def __init__(self, close: Callable[[], None]) -> None:
        self._close, self._until = close, 0.0
        self._thread: threading.Thread | None = None

    def wait(self, *_: object) -> None:
        """Begin to wait, or begin anew."""
        self._until = time.monotonic() + LONGEST_READ
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Wait no more."""
        self._until = 0.0

    def _watch(self) -> None:
        while until := self._until:
            if time.monotonic() > until:
                self._close()
                return
            time.sleep(LONGEST_READ / 90)


def bound_answers() -> None:
    """Bound the answers that huggingface_hub reads: pages, redirects, errors and files."""
    import httpx2
    from huggingface_hub import set_client_factory
    from huggingface_hub.utils._http import default_client_factory

    class Bounded(httpx2.SyncByteStream):
        def __init__(self, response: httpx2.Response, watch: _Watch, is_file: bool) -> None:
            assert isinstance(response.stream, httpx2.SyncByteStream)
            self._inner, self._watch = response.stream, watch
            self._check = _check_speed() if is_file else _check_page()

        def __iter__(self) -> Iterator[bytes]:
            for chunk in self._inner:
                self._watch.wait()
                self._check(len(chunk))
                yield chunk
            self._watch.end()

        def close(self) -> None:
            self._watch.end()
            self._inner.close()

    def bound(response: httpx2.Response, watch: _Watch) -> None:
        name, value = OF_A_FILE
        is_file = response.is_success and response.request.headers.get(name) == value
        is_head = response.request.method == "HEAD"
        encoding = response.headers.get("content-encoding", "identity").lower()
        if not is_file and not is_head and encoding != "identity":
            raise _refused("it is compressed, which was not asked for")
        response.stream = Bounded(response, watch, is_file)

    def client() -> httpx2.Client:
        http_client = default_client_factory()
        watch = _Watch(http_client.close)
        http_client.headers["accept-encoding"] = "identity"  # a bound on bytes of the wire is one on memory
        hooks = http_client.event_hooks
        hooks["request"].append(watch.wait)
        hooks["response"].append(lambda response: bound(response, watch))
        http_client.event_hooks = hooks
        return http_client

    set_client_factory(client)


def _check_page() -> Callable[[int], None]:
    """Return what is told of each piece of a page, and raises FetchError once it is too large or too slow."""
    until, received = time.monotonic() + LONGEST_ANSWER, 0

    def check(count: int) -> None:
        nonlocal received
        received += count
        if received > MOST_ANSWER:
            raise _refused(f"more than {size(MOST_ANSWER)} came, and no end in sight")
        if time.monotonic() > until:
            raise _refused(f"it was still coming after {duration(LONGEST_ANSWER)}")

    return check


def _check_speed() -> Callable[[int], None]:
    """Return what is told of each piece of a file, and raises FetchError once hardly anything comes."""
    since, received = time.monotonic(), 0

    def check(count: int) -> None:
        nonlocal since, received
        received += count
        now = time.monotonic()
        if now - since > WINDOW:
            if received < LEAST_BYTES:
                raise _refused(f"{size(received)} came in {duration(now - since)}")
            since, received = now, 0

    return check


def _refused(cause: str) -> FetchError:
    return FetchError(
        "gave up reading an answer of the hub",
        cause=cause,
        next_step="check HF_ENDPOINT: it must name a hub",
    )
