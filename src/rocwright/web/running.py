"""What runs now, for the top of the matrix: drawn once for all who look."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rocbase.errors import ExplainedError
from rocbase.files.atomic import sha256_bytes
from rocwright.records.model import Which
from rocwright.serving import state
from rocwright.serving.model import ServerState
from rocwright.web.cycling import Cycling
from rocwright.web.eta import going
from rocwright.web.render import render
from rocwright.web.site import Site, asked

# Runs that are told one by one.
RUN_LIMIT = 20

# What says how long is left is drawn anew after so long.
OLD_SECONDS = 5.0


@dataclass(slots=True)
class Now:
    """The runs under way of a site, and when the next cycle is."""

    site: Site
    cycling: Cycling | None = None
    clock: Callable[[], float] = time.monotonic
    _cached: tuple[int, float, str, bytes] | None = None

    async def part(self, counter: int) -> tuple[str, bytes]:
        """That part of the page with its digest, as of this change of the records."""
        cached = self._cached
        if cached is None or cached[0] != counter or self.clock() - cached[1] > OLD_SECONDS:
            body = await asked(self._render)
            cached = self._cached = (counter, self.clock(), sha256_bytes(body)[:16], body)
        return cached[2], cached[3]

    def _render(self) -> bytes:
        records = self.site.records
        runs = records.runs(Which(state="running"), limit=RUN_LIMIT)
        times = records.times() if runs else []
        running = [going(run, times) for run in runs]
        waiting = records.count(Which(state="queued"))
        return render(
            "now.html", going=running, waiting=waiting, cycling=self.cycling, serving=self._serving()
        ).encode()

    def _serving(self) -> list[ServerState]:
        """Return the servers that run, and those whose engine does not answer: `/servers` says so."""
        up = []
        for server in state.servers(self.site.home):
            try:
                up += [server] if state.runs(server) else []
            except ExplainedError:
                up.append(server)
        return up
