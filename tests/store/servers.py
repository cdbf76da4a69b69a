"""Servers of objects on this machine: S3 with and without conditional puts, a plain web server."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


@contextlib.contextmanager
def serving(handler: object) -> Iterator[str]:
    """The URL of a server with that handler, for as long as this lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)  # type: ignore[arg-type]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Files(SimpleHTTPRequestHandler):
    """Knows no ranges, as many a static host."""

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def static_host(folder: Path) -> Iterator[str]:
    """The URL of a plain web server of a folder."""
    with serving(partial(_Files, directory=str(folder))) as url:
        yield url


class _Overwriting(BaseHTTPRequestHandler):
    """As much of S3 as a put needs, and blind to If-None-Match: some real servers are."""

    objects: dict[str, bytes]

    def do_PUT(self) -> None:
        self.objects[urlsplit(self.path).path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200)

    def do_DELETE(self) -> None:
        self.objects.pop(urlsplit(self.path).path, None)
        self._answer(204)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("ETag", '"0"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def overwriting_s3() -> Iterator[str]:
    """The URL of a server that overwrites in silence."""
    with serving(type("Handler", (_Overwriting,), {"objects": {}})) as url:
        yield url


@contextlib.contextmanager
def s3() -> Iterator[str]:
    """The URL of an S3 server with a bucket `lab`."""
    from moto.server import ThreadedMotoServer

    # `verbose` is for its banner alone: each request was a line between those of `make farm`
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        # moto looks at If-Match and writes in two steps, where S3 does both at once
        assert server._server is not None
        server._server.app = _each_by_itself(server._server.app)
        url = f"http://{host}:{port}"
        urlopen(Request(f"{url}/lab", method="PUT")).close()
        yield url
    finally:
        # what it has is kept by its process, not by the server
        urlopen(Request(f"{url}/moto-api/reset", method="POST")).close()
        server.stop()


def _each_by_itself(app: WSGIApplication) -> WSGIApplication:
    """Answer one request at a time."""
    lock = threading.Lock()

    def answer(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        with lock:
            return app(environ, start)

    return answer


def reach(monkeypatch: pytest.MonkeyPatch, url: str, secret: str = "a-secret") -> None:
    """The variables by which S3's own clients find a server and its credentials."""
    said = {
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "a-key",
        "AWS_SECRET_ACCESS_KEY": secret,
    }
    for name, value in said.items():
        monkeypatch.setenv(name, value)
