"""A server for tests: its records, a client, and a real socket where a stream is read."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import uvicorn
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from rocwright.home import Home
from rocwright.records.model import Run, StepRun
from rocwright.records.read import Records
from rocwright.web.access import Access, Scope, Tokens
from rocwright.web.app import app
from rocwright.web.server import settings
from rocwright.web.site import Site

HOST = "http://127.0.0.1"


@dataclass
class Clock:
    """Time that goes only when it is told to."""

    at: float = 1000.0

    def __call__(self) -> float:
        return self.at


@dataclass
class Served:
    """A site, its application, and a clock."""

    site: Site
    made: ASGIApp
    clock: Clock
    secrets: dict[str, str] = field(default_factory=dict)

    def client(self, *scopes: Scope) -> TestClient:
        """Somebody with a token for these scopes; with none: a stranger."""
        client = TestClient(self.made, base_url=HOST, follow_redirects=False)
        if scopes:
            name = "-".join(scopes)
            if name not in self.secrets:
                self.secrets[name] = self.site.access.tokens.add(name, scopes)
            answer = client.post("/enter", data={"token": self.secrets[name], "to": "/"})
            assert answer.status_code == 303
        return client

    def secret(self, client: TestClient) -> str:
        """What its forms must carry."""
        found = re.search(r'name="secret" value="([^"]+)"', client.get("/").text)
        assert found
        return found[1]


def serve_site(home: Home, records: Records, *, open_: bool = True, hidden: tuple[str, ...] = ()) -> Served:
    """A site on a home folder, read by anybody unless told otherwise."""
    clock = Clock()
    access = Access(Tokens(home.path / "tokens.json"), open_, clock=clock)
    site = Site(home=home, records=records, access=access, folder=home.path, hidden=hidden)
    return Served(site, app(site, ("localhost",)), clock)


@contextmanager
def listening(made: ASGIApp, most_clients: int = 100) -> Iterator[tuple[str, int]]:
    """The application on a port, in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        server = uvicorn.Server(settings(made, most_clients))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        host, port = bound.getsockname()
        try:
            yield host, port
        finally:
            server.should_exit = True
            thread.join(10)


def a_run(ident: str = "20260101T000000.000000Z-000001", **more: object) -> Run:
    """A build that ended well."""
    said: dict[str, object] = {
        "id": ident,
        "command": "build",
        "started": "2026-01-01T00:00:00Z",
        "seconds": 12,
        "stack": "tiny",
        "gpu": ("gfx1151",),
        "base": "debian:sid",
        "outcome": "built",
        "steps": (a_step(),),
    }
    return Run.model_validate(said | more)


def a_step(**more: object) -> StepRun:
    """A step that was built, with its log."""
    said: dict[str, object] = {"name": "alpha", "key": "k" * 64, "outcome": "built", "log": "alpha.log"}
    return StepRun.model_validate(said | more)


def write_log(home: Home, run: Run, text: str) -> None:
    """Lines for the log of its first step."""
    folder = home.runs / run.id
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / run.steps[0].log).open("a") as file:
        file.write(text)


def events(answer: httpx.Response) -> Iterator[tuple[str, str]]:
    """The events of a stream: name and data."""
    name = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            yield name, line[6:]


def until(holds: Callable[[], bool]) -> None:
    """Wait for it; it may be slow where much else runs."""
    for _ in range(600):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError("it never came")
