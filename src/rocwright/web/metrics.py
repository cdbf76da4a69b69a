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
from rocwright.follow.notify.ledger import read
from rocwright.home import Home
from rocwright.records.model import Which
from rocwright.records.standings import STANDINGS, standing
from rocwright.store.model import Store
from rocwright.web.health import Health
from rocwright.web.site import asked

# The store is measured anew after so long: that reads the size of each file in it.
STORE_SECONDS = 600.0

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
        states = Counter(standing(cell) for cell in cells)
        rows = Gauge("rocwright_rows", "Rows of the matrix, by how their newest run ended.", None, ["state"])
        for state in STANDINGS:
            rows.add_metric([state], states[state])
        yield rows
        broken = Gauge("rocwright_row_broken", "1 where the newest run of the row failed.", None, ROW)
        channels = Gauge("rocwright_channel_rows", "Rows of which a channel holds a lock.", None, ["channel"])
        for cell in cells:
            broken.add_metric([getattr(cell, name) for name in ROW], standing(cell) == "failing")
        for channel, count in sorted(Counter(name for cell in cells for name in cell.channels).items()):
            channels.add_metric([channel], count)
        yield broken
        yield channels

    def _builds(self) -> Iterator[Metric]:
        records = self.health.site.records
        last = records.runs(Which(command="build", state="ended"), limit=1, steps=False)
        if last:
            yield Gauge("rocwright_last_build_seconds", "What the newest build took.", last[0].seconds)
            started = datetime.fromisoformat(last[0].started).timestamp()
            yield Gauge("rocwright_last_build_timestamp_seconds", "When the newest build began.", started)
        runs = Gauge("rocwright_runs", "Runs that wait in the queue, and that run.", None, ["state"])
        for state in ("queued", "running"):
            runs.add_metric([state], records.count(Which(state=state)))
        yield runs

    def _cycles(self) -> Iterator[Metric]:
        try:
            pace = self.health.pace()
        except ExplainedError:
            # /healthz says that the settings cannot be read
            return
        if pace.age is not None:
            yield Gauge("rocwright_cycle_age_seconds", "Seconds since the last cycle ended.", pace.age)
            yield Gauge("rocwright_cycle_ok", "1 where every row of the last cycle was fine.", pace.ok)
        yield Gauge("rocwright_cycle_overdue", "1 where no cycle ended for longer than allowed.", pace.late)

    def _waiting(self) -> Iterator[Metric]:
        ledger = read(self.health.site.home)
        waiting = Gauge("rocwright_notify_waiting", "Changes not told yet, by destination.", None, ["name"])
        for name, delivery in ledger.told.items() if ledger else ():
            waiting.add_metric([name], len(delivery.waiting))
        yield waiting

    def _store_bytes(self) -> int | None:
        moment, cached = self.clock(), self._store
        if cached is None or moment - cached[0] > STORE_SECONDS:
            cached = self._store = (moment, _bytes_of(self.health.site.home))
        return cached[1]


def _bytes_of(home: Home) -> int | None:
    """What the store takes; None where that is not to be had cheaply, or at all."""
    try:
        store: Store = store_of(home)
        return sum(file.size for file in store.local.files()) if store.url.startswith("file:") else None
    except (ExplainedError, OSError):
        return None
