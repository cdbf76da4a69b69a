"""What the building machine left in a file: keys and passwords, folders of its own. The rules are data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Annotated, Literal, Self

import re2
from pydantic import Field, model_validator

from rocbase.model import Frozen
from rocbase.toml.read import Reader
from rocwheel.tables import data_folders
from rocwheel.wheels.lint.model import Grade, LintFinding

LONGEST = 1024
"""A leftover is looked for in so many bytes from where it begins."""

MOST_SHOWN = 3
_WORD = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=")

Text = Annotated[str, Field(min_length=1)]


class Leftover(Frozen):
    """A kind of thing that should not be in what others get.

    A file is searched for what it `begins` with; the regular expression `pattern` must match from there.
    `alone` says that no letter, digit or the like stands before it; `not_like` is the pattern of what only
    looks like one (placeholders of documentation).
    """

    name: Text
    grade: Literal["secret", "trace"]
    begins: Annotated[tuple[Text, ...], Field(min_length=1)]
    pattern: Text
    alone: bool = False
    not_like: str = ""
    why: Text
    next: Text
    examples: Annotated[tuple[Text, ...], Field(min_length=1)]
    no_match: tuple[Text, ...] = ()
    source: Annotated[tuple[Text, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _keeps_its_examples(self) -> Self:
        for text in self.examples:
            if not any(Rules([self]).find(text.encode())):
                raise ValueError(f"the pattern does not match {text!r}")
        for text in self.no_match:
            if any(Rules([self]).find(text.encode())):
                raise ValueError(f"the pattern matches {text!r}")
        return self

    def match(self, data: bytes, position: int) -> bytes | None:
        """Such a thing that begins at byte `position`."""
        match = _compiled(self.pattern).match(data, position, position + LONGEST)
        if match is None or (self.alone and position > 0 and data[position - 1] in _WORD):
            return None
        if self.not_like and _compiled(self.not_like).search(match[0]):
            return None
        return match[0]


class Rules:
    """Kinds of leftovers, looked for all at once: one reading finds where any of them may begin."""

    def __init__(self, leftovers: Iterable[Leftover]) -> None:
        self.leftovers = tuple(leftovers)
        self._by_begin: dict[bytes, list[Leftover]] = {}
        for leftover in self.leftovers:
            for begin in leftover.begins:
                self._by_begin.setdefault(begin.encode(), []).append(leftover)
        longest_first = sorted(self._by_begin, key=len, reverse=True)
        self._begins = re2.compile(b"|".join(map(re2.escape, longest_first)))

    def find(self, data: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[Leftover, bytes]]:
        """Each leftover that begins in bytes `start` to `end`; it may go on behind `end`."""
        stop = len(data) if end is None else end
        free: dict[str, int] = {}
        for begin in self._begins.finditer(data, start, min(len(data), stop + LONGEST)):
            position = begin.start()
            if position >= stop:
                return
            for leftover in self._by_begin[begin[0]]:
                if position >= free.get(leftover.name, 0) and (matched := leftover.match(data, position)):
                    free[leftover.name] = position + len(matched)
                    yield leftover, matched


class LeftoversFile(Frozen):
    """leftovers.toml."""

    leftover: tuple[Leftover, ...]


@cache
def the_leftovers() -> Rules:
    """The kinds of leftovers that the catalog knows. Raises InputError where a table is wrong."""
    reader = Reader(data_folders())
    leftovers: dict[str, Leftover] = {}
    for path in reader.layers("leftovers.toml"):
        table = reader.model(LeftoversFile, reader.data(path), path)
        leftovers |= {leftover.name: leftover for leftover in table.leftover} if table else {}
    return Rules(leftovers.values())


class LeftoverSearch:
    """Looks for leftovers in data that comes in pieces; `findings` tells what was there."""

    def __init__(self, path: str, rules: Rules | None = None) -> None:
        self._path = path
        self._rules = rules or the_leftovers()
        self._pending = b""
        self._start = 0
        self._count: dict[str, int] = {}
        self._shown: dict[str, dict[str, None]] = {}

    def feed(self, piece: bytes) -> None:
        """Search in one more piece; its last bytes wait for what follows."""
        data = self._pending + piece
        stop = max(self._start, len(data) - LONGEST)
        self._look(data, stop)
        # one byte before the next place, to see whether a thing stands alone
        begin = max(0, stop - 1)
        self._pending, self._start = data[begin:], stop - begin

    def findings(self) -> list[LintFinding]:
        """What was found, secrets masked; the search ends with it."""
        self._look(self._pending, len(self._pending))
        self._pending = b""
        return [
            LintFinding(
                grade=Grade.ERROR if rule.grade == "secret" else Grade.NOTE,
                kind=rule.name,
                path=self._path,
                what=_summary(rule, self._count[rule.name], self._shown[rule.name]),
                next_step=rule.next,
            )
            for rule in self._rules.leftovers
            if self._count.get(rule.name)
        ]

    def _look(self, data: bytes, stop: int) -> None:
        for rule, matched in self._rules.find(data, self._start, stop):
            self._count[rule.name] = self._count.get(rule.name, 0) + 1
            shown = self._shown.setdefault(rule.name, {})
            if len(shown) < MOST_SHOWN:
                shown[_shown(rule, matched)] = None


def _shown(rule: Leftover, matched: bytes) -> str:
    text = matched.decode("ascii", errors="replace")
    if rule.grade == "trace":
        return text if len(text) <= 80 else f"{text[:77]}..."
    return f"{text[:4]}... ({len(matched)} characters, not shown)"


def _summary(rule: Leftover, count: int, shown: Mapping[str, None]) -> str:
    times = "once" if count == 1 else f"{count:,} times"
    return f"{rule.name}, {times}: {', '.join(shown)}; {rule.why}"


@cache
def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode())
