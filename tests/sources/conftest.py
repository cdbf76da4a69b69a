"""Real git repositories, and a package index on this machine that can misbehave."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from samples.repository import Repository as Repository
from samples.repository import make_repository as make_repository


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository, with the settings of no user of this machine."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return make_repository(tmp_path / "upstream")


@dataclass
class Index:
    """A package index: files by project, and what it does wrong."""

    url: str = ""
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    form: str = "json"
    hashes: bool = True
    truncate: bool = False
    ranges: bool = False
    page: bytes | None = None
    wrong: bytes | None = None
    rows: dict[str, dict[str, object]] = field(default_factory=dict)
    """What a page tells of a file beside, by its name."""

    def simple_page(self, project: str) -> tuple[str, bytes]:
        rows = self.files[project]
        if self.page is not None:
            return ("application/vnd.pypi.simple.v1+json" if self.form == "json" else "text/html", self.page)
        if self.form == "json":
            told = [
                {
                    "filename": name,
                    "url": f"{self.url}/files/{name}",
                    "size": len(data),
                    "hashes": {"sha256": sha256(data).hexdigest()} if self.hashes else {},
                    **self.rows.get(name, {}),
                }
                for name, data in rows.items()
            ]
            body = {"meta": {"api-version": "1.1"}, "name": project, "versions": [], "files": told}
            return "application/vnd.pypi.simple.v1+json", json.dumps(body).encode()
        links = [
            f'<a href="{self.url}/files/{name}#sha256={sha256(data).hexdigest()}">{name}</a>'
            for name, data in rows.items()
        ]
        return "text/html", f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode()


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """The package index that pip of this process is set up for."""
    with served_index() as served:
        monkeypatch.setenv("PIP_INDEX_URL", f"{served.url}/simple")
        yield served


@pytest.fixture
def vendor() -> Iterator[Index]:
    """Another package index, which pip knows nothing of."""
    with served_index() as served:
        yield served


@contextmanager
def served_index() -> Iterator[Index]:
    """A package index on this machine."""
    served = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            words = self.path.strip("/").split("/")
            everything = {name: data for rows in served.files.values() for name, data in rows.items()}
            if words[0] == "simple" and words[-1] in served.files:
                kind, body = served.simple_page(words[-1])
            elif words[0] == "files" and words[-1] in everything:
                kind, body = "application/octet-stream", served.wrong or everything[words[-1]]
            else:
                self.send_error(404)
                return
            span = (
                re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "")) if served.ranges else None
            )
            if span and words[0] == "files":
                size = len(body)
                first = int(span[1]) if span[1] else max(size - int(span[2]), 0)
                body = body[first : int(span[2]) + 1 if span[1] else size]
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {first}-{first + len(body) - 1}/{size}")
            else:
                self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if served.truncate and words[0] == "files" else body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield served
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How many seconds were waited between tries of a download, instead of the waiting."""
    found: list[float] = []
    clock = SimpleNamespace(time=time.time, sleep=found.append)
    monkeypatch.setattr("urllib3.util.retry.time", clock)
    return found
