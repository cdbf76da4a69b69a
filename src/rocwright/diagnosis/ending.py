"""The last lines of a log: a program that has no words of its own for errors tells its failure there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rocwright.catalog.issue import any_of, bare, stamps
from rocwright.diagnosis.novel import follows, has_words
from rocwright.diagnosis.read_log import MOST_LINES
from rocwright.diagnosis.scan import shown

# Bytes and lines of a log's end that are looked at.
MOST_KEPT, LAST_LINES = 16 * 1024, 40

# The last of ninja's steps: the catalog's patterns are RE2's, which has no reference back.
_LAST_STEP = re.compile(rb"\[([0-9]+)/\1\] ")


class LastLine(NamedTuple):
    """One of the last lines, numbered from the end (1: the last), as it is shown with those that follow, and
    whether it has words of a failure."""

    from_end: int
    lines: tuple[str, ...]
    says: bool


class Ending:
    """The end of a log that comes in pieces of whole, clean lines.

    `last` are the words of a failure, `before` is what may stand before a line, `calm` what is no error,
    `success` how a last line looks after a success.
    """

    def __init__(
        self, last: Sequence[str], prefixes: Sequence[str], calm: Sequence[str], success: Sequence[str]
    ) -> None:
        self._words, self._stamp, self._calm = any_of(last), stamps(prefixes), any_of(calm)
        self._success = any_of(success)
        self._kept = b""

    def feed(self, piece: bytes) -> None:
        """Take one more piece in."""
        self._kept = (self._kept + piece[-MOST_KEPT:])[-MOST_KEPT:]

    def told(self) -> LastLine | None:
        """The first of the last lines that has words of a failure and is not calm; None where none has."""
        end = self._end()
        for index, line in enumerate(end):
            if self._words is not None and self._words.search(line) and not self._is_calm(line):
                return self._line(end, index, says=True)
        return None

    def is_success(self) -> bool:
        """Return whether the last line is that of a success."""
        line = next((line for line in reversed(self._end()) if line.strip()), b"")
        own = bare(line, self._stamp)
        return bool(_LAST_STEP.match(own)) or (self._success is not None and bool(self._success.search(own)))

    def candidates(self) -> Iterator[LastLine]:
        """The last lines, those first that are likelier to tell the failure: with words of one before the
        others, calm lines and those of what only follows after the rest; the first of those with words, the
        last of those without."""
        end = self._end()
        says = [self._says(line) for line in end]

        def rank(index: int) -> tuple[bool, bool, int]:
            return (
                not says[index],
                follows(end[index]) or self._is_calm(end[index]),
                index if says[index] else -index,
            )

        for index in sorted((index for index, line in enumerate(end) if line.strip()), key=rank):
            yield self._line(end, index, says=says[index])

    def _says(self, line: bytes) -> bool:
        return has_words(line) or (self._words is not None and bool(self._words.search(line)))

    def _end(self) -> list[bytes]:
        lines = self._kept.splitlines()
        return (lines if len(self._kept) < MOST_KEPT else lines[1:])[-LAST_LINES:]

    def _line(self, end: Sequence[bytes], index: int, *, says: bool) -> LastLine:
        around = tuple(shown(line, self._stamp) for line in end[index : index + MOST_LINES])
        return LastLine(len(end) - index, around, says)

    def _is_calm(self, line: bytes) -> bool:
        own = bare(line, self._stamp)
        return self._calm is not None and bool(self._calm.search(line) or self._calm.search(own))
