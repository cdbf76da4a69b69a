"""What looking for an edit's place in a text gives, and the most similar lines of the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

# Lines that are compared letter by letter, at most: those that share most words with what is looked for.
MOST_COMPARED = 60

LONGEST_SHOWN = 160


@dataclass(frozen=True, slots=True)
class TextChange:
    """The characters from `start` to `end` become `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The changes that an edit makes in a text, in how many places it is already made (`there`), what
    it looked for in words (`wanted`), and a line like those that it looked for (`needle`)."""

    changes: tuple[TextChange, ...] = ()
    there: int = 0
    wanted: str
    needle: str


def changed(text: str, changes: Iterable[TextChange]) -> str:
    """The text after the changes, which do not overlap."""
    pieces, last = [], 0
    for change in sorted(changes, key=lambda change: change.start):
        pieces += [text[last : change.start], change.text]
        last = change.end
    return "".join([*pieces, text[last:]])


def outside(spans: Iterable[tuple[int, int]], within: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans that do not lie within one of the others."""
    return [
        (start, end)
        for start, end in spans
        if not any(first <= start and end <= last for first, last in within)
    ]


def occurrences(text: str, part: str) -> list[tuple[int, int]]:
    """Where `part` stands in `text`; empty for an empty part."""
    return [match.span() for match in re.finditer(re.escape(part), text)] if part else []


def line_of(text: str, position: int) -> int:
    """The number of the line, from 1."""
    return text.count("\n", 0, position) + 1


def shown(text: str, numbers: Iterable[int]) -> str:
    """Lines with their numbers, as a person reads them."""
    lines = text.split("\n")
    return "\n".join(f"{number}: {lines[number - 1].rstrip()[:LONGEST_SHOWN]}" for number in numbers)


def nearest(text: str, needle: str, limit: int = 3) -> list[int]:
    """The numbers of the lines that are most like `needle`, from the top; none where nothing is like it."""
    target = next((line.strip() for line in needle.split("\n") if line.strip()), "")
    words = set(re.findall(r"\w+", target.lower()))
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    shared = [
        (len(words & set(re.findall(r"\w+", line.lower()))), -number, line)
        for number, line in lines
        if len(line) < 2000
    ]
    likely = sorted((entry for entry in shared if entry[0]), reverse=True)[:MOST_COMPARED]
    scored = sorted(
        (
            (SequenceMatcher(None, line.lower(), target.lower(), autojunk=False).ratio(), -number)
            for _, number, line in ((count, -number, line) for count, number, line in likely)
        ),
        reverse=True,
    )
    return sorted(-number for score, number in scored[:limit] if score > 0.3)
