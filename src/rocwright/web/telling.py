"""While a server runs: what others changed is told, what could not be delivered is tried again."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rocbase.errors import ExplainedError
from rocwright.follow.notify.ledger import read
from rocwright.follow.notify.tell import start
from rocwright.home import Home
from rocwright.records.read import Records
from rocwright.web.health import Health

# Between two cheap looks at whether anything changed.
LOOK_SECONDS = 5.0

# So long a server that ends waits for a look; a delivery may go on after that.
LAST_SECONDS = 3.0

# For so long the matrix must stand still: between a build and its checks nobody knows how the row stands.
SETTLE_SECONDS = 60.0


@dataclass(slots=True)
class Telling:
    """Starts a look (`rocwright.follow.notify`) where there is something to look at."""

    home: Home
    records: Records
    health: Health
    say: Callable[[str], None] = lambda _: None
    settle: float = SETTLE_SECONDS
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin: how everything stands now is noted, where nobody did before."""
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more; a delivery that is under way goes on."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(LOOK_SECONDS)

    def _work(self) -> None:
        looked: object = None
        latest, since = self._signs(), time.monotonic() - self.settle
        while not self._ended.is_set():
            signs = self._signs()
            if signs != latest:
                latest, since = signs, time.monotonic()
            settled = time.monotonic() - since >= self.settle
            if (signs != looked and settled) or self._is_due():
                looked = signs
                self._look()
            self._ended.wait(LOOK_SECONDS if self.settle > LOOK_SECONDS else self.settle)

    def _look(self) -> None:
        cycling = self.health.cycling
        try:
            child = start(
                folder=str(self.health.site.folder.resolve()),
                every=cycling.hours if cycling else 0,
                since=self.health.since,
            )
        except ExplainedError as error:
            self.say(f"changes are not told: {error}")
            return
        while child.poll() is None and not self._ended.wait(0.2):
            pass
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(LAST_SECONDS)

    def _signs(self) -> object:
        """What is another where there may be something to tell."""
        try:
            cells = self.records.changed()[1]
            late = self.health.pace().late
        except ExplainedError:
            return None
        folders = (self.home.cycles, self.home.watched)
        return cells, late, tuple(_newest(folder.glob("*.json")) for folder in folders)

    def _is_due(self) -> bool:
        ledger, moment = read(self.home), datetime.now(UTC)
        if ledger is None:
            return False
        waiting = [delivery for delivery in ledger.told.values() if delivery.waiting]
        waiting += [ledger.ping] if ledger.ping.error else []
        return any(
            not delivery.again or datetime.fromisoformat(delivery.again) <= moment for delivery in waiting
        )


def _newest(paths: Iterable[Path]) -> int:
    """When one of these files was written last."""
    newest = 0
    for path in paths:
        with contextlib.suppress(OSError):
            newest = max(newest, path.stat().st_mtime_ns)
    return newest
