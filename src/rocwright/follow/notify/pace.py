"""Whether cycles still come as they are expected to."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from rocwright.config import Cycles
from rocwright.follow.cycle.run import last_cycle
from rocwright.follow.notify.facts import overdue
from rocwright.home import Home


class Pace(NamedTuple):
    """When the last cycle of a folder `ended` ("": none ever did), how many seconds ago, whether it was good,
    how many hours are allowed without one (0: nobody expects any), and whether they are over."""

    ended: str
    age: float | None
    ok: bool
    limit: float
    late: bool


def pace(home: Home, folder: Path, cycles: Cycles, every: float, since: str) -> Pace:
    """How cycles of a folder come, where one is expected `every` so many hours, `since` then, unless the
    `cycles` say otherwise."""
    cycle, limit, moment = last_cycle(folder, home), cycles.limit(every), datetime.now(UTC)
    ended = cycle.ended if cycle else ""
    age = (moment - datetime.fromisoformat(ended)).total_seconds() if ended else None
    late = overdue(ended or since, limit, moment) is not None
    return Pace(ended, age, cycle.ok if cycle else False, limit, late)
