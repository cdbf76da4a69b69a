"""The line of a TOML file that gives a value, by parsing parts of it: the parser itself tells no lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import tomli

MOST_CHARACTERS = 4_000_000
"""What is parsed for one line, a second or so; a fault in a file that needs more is told without its line."""


def line_in(path: Path, place: Sequence[str | int]) -> int:
    """The line, from 1 on, of the statement in a file that gives what `place` leads to: names of keys, and
    numbers in lists from 0 on.

    Where that is not there, the line of the nearest thing around it; 0 where nothing of it is, or the file is
    no TOML.
    """
    try:
        return line_of(path.read_text(encoding="utf-8"), place)
    except (OSError, ValueError):
        return 0


def line_of(text: str, place: Sequence[str | int]) -> int:
    """As `line_in`, for the text of a file."""
    lines = _Lines(text)
    parsed = lines.upto(len(lines.lines))
    depth = _depth(parsed, place)
    return lines.first(place[:depth]) if depth else 0


class _Lines:
    """The first lines of a text, as data where they are whole."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines(keepends=True)
        self._left = MOST_CHARACTERS

    def upto(self, count: int) -> dict[str, object] | None:
        """What the first lines say; None where they end amid a value, or enough was parsed."""
        text = "".join(self.lines[:count])
        self._left -= len(text)
        try:
            return tomli.loads(text) if self._left >= 0 else None
        except (ValueError, RecursionError):
            return None

    def first(self, place: Sequence[str | int]) -> int:
        """The line where the statement begins that gives `place`: what stands before is whole without it."""
        low, high = 0, len(self.lines)
        while high - low > 1 and self._left > 0:
            middle = (low + high) // 2
            # a value over several lines is whole only at its end
            for count in (*range(middle, low, -1), *range(middle + 1, high)):
                parsed = self.upto(count)
                if parsed is not None or self._left <= 0:
                    break
            else:
                break
            if _depth(parsed, place) == len(place):
                high = count
            else:
                low = count
        return low + 1 if self._left > 0 else 0


def _depth(node: object, place: Sequence[str | int]) -> int:
    """How many parts of a place lead to something in the data."""
    for depth, part in enumerate(place):
        if isinstance(node, dict) and str(part) in node:
            node = node[str(part)]
        elif isinstance(node, list | dict) and str(part).isdecimal() and int(part) < len(node):
            # rows may be tables by a name
            node = [*(node.values() if isinstance(node, dict) else node)][int(part)]
        else:
            return depth
    return len(place)
