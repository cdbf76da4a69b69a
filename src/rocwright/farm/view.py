"""What a farm looks like from outside, and which of its machines went while one looked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rocbase.errors import ExplainedError
from rocwright.farm.handed import Place

# Seconds for which an answer is taken for that of now: many may look at once.
FRESH = 2.0

# Seconds for which a machine that went is shown.
REMEMBERED = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmView:
    """The machines that are there, those that went with the seconds since then, and why nothing is known."""

    places: tuple[Place, ...] = ()
    gone: tuple[tuple[Place, float], ...] = ()
    silent: str = ""


@dataclass(slots=True)
class View:
    """Asks no more often than is of use. `ask` gives the machines, or raises what a user can read."""

    ask: Callable[[], list[Place]]
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _seen: FarmView = FarmView()
    _asked: float | None = None
    _last: dict[str, tuple[Place, float]] = field(default_factory=dict)

    def look(self) -> FarmView:
        """The farm as it is now."""
        with self._lock:
            moment = self.clock()
            if self._asked is None or moment - self._asked >= FRESH:
                self._seen = self._look(moment)
                self._asked = self.clock()
            return self._seen

    def _look(self, moment: float) -> FarmView:
        try:
            places = self.ask()
        except ExplainedError as error:
            return FarmView(silent=f"{error.message}: {error.cause}")
        names = {place.name for place in places}
        self._last |= {place.name: (place, moment) for place in places}
        self._last = {name: entry for name, entry in self._last.items() if moment - entry[1] <= REMEMBERED}
        missing = (
            (place, moment - last_seen)
            for name, (place, last_seen) in self._last.items()
            if name not in names
        )
        return FarmView(places=tuple(places), gone=tuple(missing))
