"""How many tokens there are, in the fifo and in the hands of clients, and what becomes of those that are
lost.

Who holds a token is not known, only how many are out. Two things are seen besides: how many threads live in
the steps (a token that nobody can hold any more is lost), and how many processes work (more than tokens
explain were started by tools that know no job server, or were told a number; so much less may be given
out).

The first process of a step needs no token. It may have one all the same: ninja starts two, the one without
a token ends, and the other, a link of minutes, goes on alone. So a token counts as lost only once all have
ended that it could have been taken for.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from statistics import mean

from rocwright.execution.jobs.tokens import Tokens

PATIENCE = 2.0
"""Seconds for which something must hold without a break before it is believed.

A client takes a token some moments before its process is there, and gives it back some moments after.
"""


WRITERS = 0.05
"""Seconds in one look for a process that writes tokens of its own without end."""


@dataclass(slots=True)
class Lasting:
    """The values that a number had within the last `PATIENCE` seconds."""

    _values: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, timestamp: float, value: int) -> None:
        """Take in a value."""
        self._values.append((timestamp, value))
        while len(self._values) > 1 and self._values[1][0] <= timestamp - PATIENCE:
            self._values.popleft()

    def least(self) -> int:
        """The least of them; 0 until so long has passed."""
        return max(0, min(value for _, value in self._values)) if self._window_is_full() else 0

    def usual(self) -> int:
        """Their mean; 0 until so long has passed."""
        return max(0, round(mean(value for _, value in self._values))) if self._window_is_full() else 0

    def forget(self) -> None:
        """Begin anew."""
        self._values.clear()

    def _window_is_full(self) -> bool:
        return bool(self._values) and self._values[0][0] <= self._values[-1][0] - PATIENCE


@dataclass(slots=True)
class Circulation:
    """Keeps `tokens` at what is wanted. Only the job server's thread has it."""

    tokens: Tokens
    _there: int = 0
    _lost: Lasting = field(default_factory=Lasting)
    _holders: frozenset[int] | None = None
    """Processes that a token which seems lost may have been taken for; None where none seems lost."""
    _surplus: Lasting = field(default_factory=Lasting)
    _unexplained: int = 0
    flooded: bool = False
    """Whether somebody still wrote at the last look."""

    def out(self) -> int:
        """Tokens in the hands of clients, lost ones too. What somebody wrote beyond what there is, is taken
        away, for `WRITERS` seconds where more of it comes."""
        self._there -= self.tokens.drained()
        idle = self.tokens.held()
        self.flooded = idle > self._there
        end = time.monotonic() + (WRITERS if self.flooded else 0)
        while time.monotonic() < end:
            self.tokens.take(idle - self._there)
            time.sleep(WRITERS / 50)  # for one that waits to write more
            idle = self.tokens.held()
        return max(0, self._there - idle)

    def note(
        self, timestamp: float, *, out: int, threads: int, surplus: int, started: frozenset[int]
    ) -> None:
        """Take in what was seen at once: `out` tokens, `threads` that could have one each, by how many the
        processes that work are more than those that tokens explain, and the processes that clients have
        `started`."""
        if out <= threads:
            self._holders = None
        else:
            self._holders = started if self._holders is None else self._holders & started
        self._lost.note(timestamp, out - threads)
        if not self._holders and (lost := self._lost.least()):
            self._there -= lost
            self._lost.forget()
        self._surplus.note(timestamp, surplus - out)
        self._unexplained = self._surplus.usual()

    def settle(self, total: int) -> None:
        """Have `total` tokens in all, less what works without; those in the hands of clients are awaited,
        and not let go again."""
        target = max(0, total - self._unexplained)
        self.tokens.drain(0)
        self._there -= self.tokens.drained()
        if target > self._there:
            self._there += self.tokens.put(target - self._there)
        elif target < self._there:
            self._there -= self.tokens.take(self._there - target)
            self.tokens.drain(self._there - target)
