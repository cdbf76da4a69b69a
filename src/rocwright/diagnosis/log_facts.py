"""What a log tells of itself: its days, its cards, its kernel and what it names, so that causes of others are
ruled out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

import re2

from rocwright.catalog.issue import any_in_lines, options

# Bytes at each end of a piece that are read: a log is long, and its times go up.
END = 4 * 1024

# So many pieces at the begin are read, and of the others one in so many, and the last.
FIRST, EVERY = 64, 32

# Characters of a kernel's release.
MOST_KERNEL = 80

# Cards that are kept.
MOST_CARDS = 16


class LogFacts:
    """The newest day, the cards and the last kernel that a log names, from pieces of whole lines.

    `days`, `cards` and `kernels` are patterns with one group: a day as YYYY-MM-DD, a target, a release.
    `named` are those of `words` that stand in what was read, in any case of letters.
    """

    def __init__(
        self,
        days: Sequence[str],
        cards: Sequence[str],
        kernels: Sequence[str] = (),
        words: Iterable[str] = (),
    ) -> None:
        self.newest: date | None = None
        self.kernel = ""
        self.cards: tuple[str, ...] = ()
        self._pieces, self._last = 0, b""
        self._days, self._cards = any_in_lines(days), any_in_lines(cards)
        self._kernels = any_in_lines(kernels)
        self.named: set[str] = set()
        self._words = [*words]
        self._any = _set_of(self._words)

    def feed(self, piece: bytes) -> None:
        """Take one more piece in."""
        self._pieces += 1
        self._last = piece
        if self._pieces <= FIRST or self._pieces % EVERY == 0:
            self._read(piece)
            self._name(piece)

    def finish(self) -> None:
        """Read the end, where a long log was passed over."""
        if self._pieces > FIRST:
            self._read(self._last)
            self._name(self._last)

    def _read(self, piece: bytes) -> None:
        for part in (piece,) if len(piece) <= 2 * END else (piece[:END], piece[-END:]):
            for text in _matches(self._days, part):
                day = _day(text)
                if day is not None and (self.newest is None or day > self.newest):
                    self.newest = day
            for text in _matches(self._kernels, part):
                self.kernel = text[:MOST_KERNEL]
            for text in _matches(self._cards, part):
                if text not in self.cards and len(self.cards) < MOST_CARDS:
                    self.cards = (*self.cards, text)

    def _name(self, piece: bytes) -> None:
        """Look for the words that were not found yet."""
        words = [self._words[index] for index in self._any.Match(piece) or ()] if self._any else []
        if words:
            self.named.update(words)
            self._words = [word for word in self._words if word not in self.named]
            self._any = _set_of(self._words)


def _set_of(words: Sequence[str]) -> re2.Set | None:
    """What finds which of the words a text has; None where there are none."""
    if not words:
        return None
    chosen = options()
    chosen.case_sensitive = False
    every = re2.Set.SearchSet(chosen)
    for word in words:
        every.Add(re2.escape(word).encode())
    every.Compile()
    return every


def _matches(pattern: re2.Pattern | None, piece: bytes) -> list[str]:
    """The groups that matched, each once."""
    if pattern is None:
        return []
    groups = (group for match in pattern.finditer(piece) for group in match.groups() if group)
    return list(dict.fromkeys(group.decode(errors="replace") for group in groups))


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
