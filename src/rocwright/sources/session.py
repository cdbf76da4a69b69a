"""How long a host may take, and how often it is asked again: one policy for everything that is downloaded."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from http.client import MULTIPLE_CHOICES
from typing import TYPE_CHECKING, Any

from rocwright.sources.patience import current

if TYPE_CHECKING:
    import requests
    from urllib3 import Retry
    from urllib3.connection import HTTPConnection
    from urllib3.response import HTTPResponse

TRIES = 4

# Seconds to wait at most between two tries, whatever Retry-After says.
MOST_WAIT = 60

# For all headers of an answer. A time-out alone begins again with each byte of a host that drips them.
HEADER_SECONDS = 20.0

# Answers that may be another one soon.
OVERLOADED = (429, 500, 502, 503, 504)


def retries() -> Retry:
    """Try again after 0, 2 and 4 seconds, or when the host says so; a host that is not there, once more.

    Not at all where somebody said how long it may take.
    """
    from urllib3 import Retry

    if current() is not None:
        return Retry(total=0, redirect=False, raise_on_status=False)
    return Retry(
        total=TRIES - 1,
        connect=1,
        redirect=False,
        status_forcelist=OVERLOADED,
        raise_on_status=False,
        backoff_factor=1,
        backoff_max=MOST_WAIT,
        retry_after_max=MOST_WAIT,
    )


def patient(session: requests.Session) -> requests.Session:
    """Give a session that policy."""
    return _bounded(session, retries())


@contextlib.contextmanager
def single() -> Iterator[requests.Session]:
    """Open a session that asks once, with a bound on the time of the headers."""
    import requests
    from urllib3 import Retry

    with requests.Session() as session:
        yield _bounded(session, Retry(total=0, redirect=False, raise_on_status=False))


def _bounded(session: requests.Session, tries: Retry) -> requests.Session:
    from requests.adapters import HTTPAdapter
    from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.connection import HTTPConnection, HTTPSConnection

    class PlainConnection(HTTPConnection):
        def getresponse(self) -> Any:
            with _cut_off_after(self.sock, HEADER_SECONDS):
                return _without_needless_body(self, super().getresponse())

    class EncryptedConnection(HTTPSConnection):
        def getresponse(self) -> Any:
            with _cut_off_after(self.sock, HEADER_SECONDS):
                return _without_needless_body(self, super().getresponse())

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = PlainConnection

    class EncryptedPool(HTTPSConnectionPool):
        ConnectionCls = EncryptedConnection

    for scheme in ("http://", "https://"):
        adapter = HTTPAdapter(max_retries=tries)
        adapter.poolmanager.pool_classes_by_scheme = {"http": PlainPool, "https": EncryptedPool}
        session.mount(scheme, adapter)
    return session


def _without_needless_body(connection: HTTPConnection, answer: HTTPResponse) -> HTTPResponse:
    """Return an answer; nobody needs the body of a redirect or an error, and it would be read to its end."""
    if answer.status >= MULTIPLE_CHOICES:
        answer.close()
        connection.close()
    return answer


@contextlib.contextmanager
def _cut_off_after(connection: socket.socket | None, seconds: float) -> Iterator[None]:
    late = threading.Event()

    def cut_off() -> None:
        late.set()
        with contextlib.suppress(OSError):
            if connection is not None:
                connection.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut_off)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if late.is_set():
        # headers that were cut off look complete: an empty body would follow
        raise TimeoutError(f"no whole headers within {seconds:.0f} s")
