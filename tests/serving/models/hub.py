"""A hub on this machine: it answers what huggingface_hub asks, and can break off, refuse and lie."""

from __future__ import annotations

import hashlib
import json
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = "some/models"


@dataclass
class FakeHub:
    """Files of one repository, and how it behaves."""

    files: dict[str, bytes]
    url: str = ""
    needs_token: str = ""
    gated: bool = False
    private: bool = False
    cut_after: list[int] = field(default_factory=list)
    """Bytes after which each of the next answers breaks off."""
    sends: dict[str, bytes] = field(default_factory=dict)
    """What it sends in place of the files that it names."""
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path and range of each request."""
    tokens: list[str] = field(default_factory=list)
    moved_to: str = ""
    """Where the bytes lie, if on another host."""
    plain: set[str] = field(default_factory=set)
    """Files that lie in git itself: their mark is git's name of them."""
    floods: tuple[int, str] | None = None
    """Status and encoding of every answer, whose body is 1 GiB or what gives 1 GiB."""
    flooded: int = 0
    """MiB of that which were sent."""

    def mark(self, name: str) -> str:
        data = self.files[name]
        if name in self.plain:
            return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        return hashlib.sha256(data).hexdigest()


class HubServer(ThreadingHTTPServer):
    hub: FakeHub


class Handler(BaseHTTPRequestHandler):
    @property
    def hub(self) -> FakeHub:
        assert isinstance(self.server, HubServer)
        return self.server.hub

    def log_message(self, *_: object) -> None: ...

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        self.hub.asked.append((self.command, self.path, self.headers.get("Range", "")))
        self.hub.tokens.append(self.headers.get("Authorization", ""))
        path = unquote(self.path.partition("?")[0])
        if self.hub.floods:
            self.flood(*self.hub.floods)
        elif self.hub.gated:
            self.refuse(403, "GatedRepo")
        elif self.hub.private:
            self.refuse(401, "RepoNotFound")
        elif self.hub.needs_token and self.headers.get("Authorization") != f"Bearer {self.hub.needs_token}":
            self.refuse(401, "", "Invalid credentials in Authorization header")
        else:
            self.let_in(path, body=body)

    def flood(self, status: int, encoding: str) -> None:
        self.send_response(status)
        self.send_header("Content-Encoding", encoding)
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        packer = zlib.compressobj(9, wbits=31)
        with suppress(OSError):
            for _ in range(1024):
                piece = b"a" * 1024**2
                self.wfile.write(packer.compress(piece) if encoding == "gzip" else piece)
                self.hub.flooded += 1

    def let_in(self, path: str, *, body: bool) -> None:
        if path.startswith(f"/api/models/{REPOSITORY}"):
            said = {
                "id": REPOSITORY,
                "sha": COMMIT,
                "siblings": [{"rfilename": name} for name in self.hub.files],
            }
            return self.send(json.dumps(said).encode(), {"Content-Type": "application/json"})
        prefix = f"/{REPOSITORY}/resolve/"
        if not path.startswith(prefix):
            return self.refuse(404, "RepoNotFound")
        _, _, name = path.removeprefix(prefix).partition("/")
        if name not in self.hub.files:
            return self.refuse(404, "EntryNotFound")
        self.file(name, body=body)
        return None

    def file(self, name: str, *, body: bool) -> None:
        data = self.hub.sends.get(name, self.hub.files[name])
        mark = f'"{self.hub.mark(name)}"'
        headers = {"X-Repo-Commit": COMMIT, "ETag": mark, "Accept-Ranges": "bytes"}
        if name not in self.hub.plain:
            headers |= {"X-Linked-Etag": mark, "X-Linked-Size": str(len(self.hub.files[name]))}
        if self.hub.moved_to:
            self.send_response(302)
            for key, value in (headers | {"Location": self.hub.moved_to + self.path}).items():
                self.send_header(key, value)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        begin, status = 0, 200
        asked = self.headers.get("Range", "")
        if asked:
            begin, status = int(asked.removeprefix("bytes=").partition("-")[0]), 206
            headers["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
        self.send_response(status)
        for key, value in (headers | {"Content-Length": str(len(data) - begin)}).items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            cut = self.hub.cut_after.pop(0) if self.hub.cut_after else len(data)
            self.wfile.write(data[begin : begin + cut])
            if cut < len(data) - begin:
                self.close_connection = True
                self.connection.close()

    def send(self, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(200)
        for key, value in (headers | {"Content-Length": str(len(data))}).items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, status: int, code: str, message: str = "") -> None:
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        if message:
            self.send_header("X-Error-Message", message)
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    """The hub at an address of its own, until the end."""
    server = HubServer(("127.0.0.1", 0), Handler)
    server.hub = hub
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
