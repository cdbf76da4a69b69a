"""What `rocwright run` started on this machine, whether it runs, and what it printed last."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from rocbase.errors import ExplainedError
from rocwright.home import Home
from rocwright.serving import state
from rocwright.serving.model import ServerState
from rocwright.web.log_lines import Line, read_part
from rocwright.web.pages import Pages
from rocwright.web.site import asked

# Seconds for which an answer is taken for that of now: to ask for a container starts a process.
FRESH = 2.0

# Bytes of the end of a log that are read for the page.
TAIL = 16 * 1024

# Lines of it that are shown.
LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    """A server, whether it runs ("running" | "ended" | "not known"), why that is not known, its last lines.

    `model` is the name of its file: where that lies is for who started it.
    """

    server: ServerState
    state: str
    why: str = ""
    model: str
    lines: tuple[Line, ...]


@dataclass(slots=True)
class Servers:
    """Answers `/servers`; asks no more often than is of use, however many look."""

    pages: Pages
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _cached: tuple[float, list[ServerView]] | None = None

    async def page(self, request: Request) -> Response:
        """All servers that were started and not stopped, by name."""
        self.pages.site.need(request, "read")
        return self.pages.page(request, "servers.html", servers=await asked(self._look))

    def _look(self) -> list[ServerView]:
        site = self.pages.site
        with self._lock:
            if self._cached is None or self.clock() - self._cached[0] >= FRESH:
                views = [shown(site.home, server, site.hidden) for server in state.servers(site.home)]
                self._cached = (self.clock(), views)
            return self._cached[1]


def shown(home: Home, server: ServerState, hidden: tuple[str, ...]) -> ServerView:
    """A server for the page; its key is masked in what it printed."""
    hidden = (*hidden, *_key(home, server.name))
    log = read_part(state.log_of(home, server.name), -TAIL, hidden, TAIL)
    word, reason = "not known", ""
    try:
        word = "running" if state.runs(server) else "ended"
    except ExplainedError as error:
        reason = error.message
    return ServerView(
        server=server, state=word, why=reason, model=Path(server.model).name, lines=log.lines[-LINES:]
    )


def _key(home: Home, name: str) -> tuple[str, ...]:
    with contextlib.suppress(OSError):
        key = state.key_of(home, name).read_text().strip()
        return (key,) if key else ()
    return ()
