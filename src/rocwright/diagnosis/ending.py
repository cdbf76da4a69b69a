"""The last lines of a log, where a program that has no words of its own for errors tells its failure."""

from __future__ import annotations

from collections.abc import Sequence

from rocwright.catalog.issue import any_of, bare, stamps
from rocwright.diagnosis.read_log import MOST_LINES
from rocwright.diagnosis.scan import shown

MOST_KEPT, LAST_LINES = 16 * 1024, 40
"""Bytes and lines of a log's end that are looked at."""


class Ending:
    """The end of a log that comes in pieces of whole, clean lines.

    `last` are the words of a failure, `before` is what may stand before a line, `calm` what is no error.
    """

    def __init__(self, last: Sequence[str], before: Sequence[str], calm: Sequence[str]) -> None:
        self._words, self._stamp, self._calm = any_of(last), stamps(before), any_of(calm)
        self._kept = b""

    def feed(self, piece: bytes) -> None:
        """Take one more piece in."""
        self._kept = (self._kept + piece[-MOST_KEPT:])[-MOST_KEPT:]

    def told(self) -> tuple[int, tuple[str, ...]] | None:
        """The first of the last lines that has words of a failure, numbered from the end (1: the last), and
        it with the lines that follow, to be shown; None where none has."""
        lines = self._kept.splitlines()
        whole = lines if len(self._kept) < MOST_KEPT else lines[1:]
        end = whole[-LAST_LINES:]
        for at, line in enumerate(end):
            if self._words is not None and self._words.search(line) and not self._is_calm(line):
                return len(end) - at, tuple(shown(one, self._stamp) for one in end[at : at + MOST_LINES])
        return None

    def _is_calm(self, line: bytes) -> bool:
        own = bare(line, self._stamp)
        return self._calm is not None and bool(self._calm.search(line) or self._calm.search(own))
