"""A web server that answers as told, slowly or for ever."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Upstream:
    """A web server that answers as told: path -> (status, headers, body); `endless` never ends its body."""

    def __init__(self) -> None:
        self.url = ""
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.endless: set[str] = set()
        self.over = threading.Event()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    told = Upstream()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def _answer(self, *, body: bool) -> None:
            status, headers, data = told.pages.get(self.path, (404, {}, b""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(data)
            while body and self.path in told.endless and not told.over.wait(0.05):
                try:
                    self.wfile.write(b" ")
                except OSError:
                    return

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield told
    told.over.set()
    server.shutdown()
    server.server_close()
