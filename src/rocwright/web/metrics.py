"""What Prometheus reads: rows by state, builds, cycles, the queue, the store."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily as Gauge
from prometheus_client.core import InfoMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from rocbase.errors import ExplainedError
from rocwright import __version__
from rocwright.config import store_of
from rocwright.home import Home
from rocwright.notify.ledger import read
from rocwright.records.model import Which
from rocwright.records.standings import STANDINGS, standing
from rocwright.store.model import Store
from rocwright.web.health import Health
from rocwright.web.site import asked

STORE_SECONDS = 600.0
"""The store is measured anew after so long: that reads the size of each file in it."""

ROW = ("stack", "gpu", "base", "variant")


@dataclass(eq=False)
class Metrics(Collector):
    """Reads them from the records of a site when it is asked."""

    health: Health
    clock: Callable[[], float] = time.monotonic
    _store: tuple[float, int | None] | None = field(default=None)

    async def page(self, request: Request) -> Response:
        """All of it, in Prometheus' text format."""
        return Response(await asked(self._text), media_type=CONTENT_TYPE_LATEST)

    def _text(self) -> bytes:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)

    def describe(self) -> list[Metric]:
        """None: what is told is only known when it is asked for."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Everything. Raises what the records raise."""
        yield InfoMetricFamily("rocwright", "The version that serves this.", {"version": __version__})
        yield from self._rows()
        yield from self._builds()
        yield from self._cycles()
        yield from self._waiting()
        size = self._store_bytes()
        if size is not None:
            yield Gauge("rocwright_store_bytes", "Bytes of the artifacts in the store.", size)

    def _rows(self) -> Iterator[Metric]:
        cells = self.health.site.records.matrix()
        states = Counter(standing(one) for one in cells)
        rows = Gauge("rocwright_rows", "Rows of the matrix, by how their newest run ended.", None, ["state"])
        for state in STANDINGS:
            rows.add_metric([state], states[state])
        yield rows
        each = Gauge("rocwright_row_broken", "1 where the newest run of the row failed.", None, ROW)
        held = Gauge("rocwright_channel_rows", "Rows of which a channel holds a lock.", None, ["channel"])
        for one in cells:
            each.add_metric([getattr(one, name) for name in ROW], standing(one) == "failing")
        for channel, count in sorted(Counter(name for one in cells for name in one.channels).items()):
            held.add_metric([channel], count)
        yield each
        yield held

    def _builds(self) -> Iterator[Metric]:
        records = self.health.site.records
        last = records.runs(Which(command="build", state="ended"), limit=1, steps=False)
        if last:
            yield Gauge("rocwright_last_build_seconds", "What the newest build took.", last[0].seconds)
            begun = datetime.fromisoformat(last[0].started).timestamp()
            yield Gauge("rocwright_last_build_timestamp_seconds", "When the newest build began.", begun)
        runs = Gauge("rocwright_runs", "Runs that wait in the queue, and that run.", None, ["state"])
        for state in ("queued", "running"):
            runs.add_metric([state], records.count(Which(state=state)))
        yield runs

    def _cycles(self) -> Iterator[Metric]:
        try:
            found = self.health.pace()
        except ExplainedError:
            # /healthz says that the settings cannot be read
            return
        if found.age is not None:
            yield Gauge("rocwright_cycle_age_seconds", "Seconds since the last cycle ended.", found.age)
            yield Gauge("rocwright_cycle_ok", "1 where every row of the last cycle was fine.", found.ok)
        yield Gauge("rocwright_cycle_overdue", "1 where no cycle ended for longer than allowed.", found.late)

    def _waiting(self) -> Iterator[Metric]:
        known = read(self.health.site.home)
        waiting = Gauge("rocwright_notify_waiting", "Changes not told yet, by destination.", None, ["name"])
        for name, told in known.told.items() if known else ():
            waiting.add_metric([name], len(told.waiting))
        yield waiting

    def _store_bytes(self) -> int | None:
        at, known = self.clock(), self._store
        if known is None or at - known[0] > STORE_SECONDS:
            known = self._store = (at, _bytes_of(self.health.site.home))
        return known[1]


def _bytes_of(home: Home) -> int | None:
    """What the store takes; None where that is not to be had cheaply, or at all."""
    try:
        store: Store = store_of(home)
        return sum(size for _, size in store.blobs()) if store.url.startswith("file:") else None
    except (ExplainedError, OSError):
        return None
