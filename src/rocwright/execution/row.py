"""One line about something under way, as wide as there is room: what tells least goes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

BETWEEN = " · "
# Columns that a step's last output is worth showing in.
LEAST_LAST = 12


@dataclass(frozen=True, slots=True)
class RowPart:
    """A few words, and how early they are left out where there is no room: the highest `rank` goes first."""

    text: str
    rank: int


@dataclass(frozen=True, slots=True)
class Columns:
    """How the columns of a line are shared out: the name, a bar (0: none), and all that is left."""

    name: int
    bar: int
    rest: int

    @classmethod
    def of(cls, width: int, names: Sequence[str], needed: int) -> Columns:
        """For lines of `width` columns under each other; `needed` is what the first part of each takes.

        Names are as wide as the widest; they are cut only where nothing else is left to go.
        """
        # one column is left free: a terminal may wrap a line that fills it
        room = width - 1
        name = min(max(map(len, names), default=0), room)
        remaining = room - name - 1
        bar = next((bar for bar in (20, 10) if remaining - bar - 1 >= max(needed, 2 * bar)), 0)
        return cls(name, bar, max(remaining - (bar + 1 if bar else 0), 0))


def fit(parts: Sequence[RowPart], width: int) -> str:
    """The parts in their order, as many as there is room for; the last of them may be cut."""
    visible = [part for part in parts if part.text]
    while len(visible) > 1 and len(joined(visible)) > width:
        visible.remove(max(visible, key=lambda part: part.rank))
    return cut(joined(visible), width)


def joined(parts: Sequence[RowPart]) -> str:
    """All parts in a line."""
    return BETWEEN.join(part.text for part in parts if part.text)


def cut(text: str, width: int) -> str:
    """The text, with a mark at its end where it had to be cut."""
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"[:width]
