"""What a cycle did, row by row."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from rocbase.model import Frozen
from rocwright.plan.resolve.model import Request

# The closed set of ends of a row: a lock reached a channel; nothing new, or nothing earned yet; the
# candidate broke and the old one stays; nobody could tell (no network, no room); what would be tried, where a
# cycle only looks.
State = Literal["promoted", "unchanged", "failed", "not tried", "to try"]


class Culprit(Frozen):
    """What made a candidate fail, in words, and where the report lies."""

    says: tuple[str, ...]
    report: str


class RowTold(Frozen):
    """How a row ended. `changes` says in lines what the candidate changed, `promoted` to which channels it
    came, `waits` why not to others, `run` is the run that says the most of it, `why` tells a failure, and
    `failure` its class where the candidate could not be tried. `silent` are the sources upstream that gave no
    answer."""

    request: Request
    state: State
    changes: tuple[str, ...] = ()
    promoted: tuple[str, ...] = ()
    waits: dict[str, str] = {}
    lock: str = ""
    run: str = ""
    why: str = ""
    failure: str = ""
    silent: tuple[str, ...] = ()
    culprit: Culprit | None = None

    @property
    def name(self) -> str:
        """The row in a word, as its folder is called."""
        return self.request.name


class CycleTold(Frozen):
    """A whole cycle of the project in `folder`."""

    id: str
    started: str
    seconds: float
    rows: tuple[RowTold, ...]
    folder: str = ""

    @property
    def ended(self) -> str:
        """When it ended, UTC, ISO 8601."""
        start = datetime.fromisoformat(self.started)
        return (start + timedelta(seconds=self.seconds)).isoformat(timespec="seconds").replace("+00:00", "Z")

    @property
    def ok(self) -> bool:
        """Whether no candidate failed, and every row could be looked at."""
        return not any(row.state in ("failed", "not tried") for row in self.rows)
