"""Which lines of a log may match which patterns? Those few that have one of a pattern's texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import re2

from rocwright.catalog.issue import anywhere, options, unnamed
from rocwright.catalog.literals import literals

# Lines of a piece with a text, above which its patterns themselves say which of these may match.
COMMON = 8

# Texts in a piece, above which all are looked for in a line at once: a binary file has most of them.
MANY = 100

# Bytes for what RE2 remembers of the texts: it begins anew where it needs more.
MEMORY = 32 * 1024 * 1024


class Text(NamedTuple):
    """A text, or its small letters where it `folds`, and the indices of the patterns that have it; without a
    text they must be tried on each line."""

    text: bytes
    folds: bool
    patterns: tuple[int, ...]

    def is_in(self, line: bytes) -> bool:
        """Whether a line has it."""
        return self.text in (line.lower() if self.folds else line)


class Sieve:
    """Patterns, each compiled when a line has one of its texts."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = patterns
        self._compiled: dict[int, re2.Pattern] = {}
        self._anywhere: dict[int, re2.Pattern] = {}
        texts: defaultdict[tuple[bytes, bool], list[int]] = defaultdict(list)
        for index, pattern in enumerate(patterns):
            literal = literals(pattern)
            for text in literal.texts if literal else (b"",):
                texts[text, literal is not None and literal.folds].append(index)
        self._always = [Text(b"", False, tuple(texts.pop((b"", False), ())))]
        self._texts = [Text(text, folds, tuple(have)) for (text, folds), have in texts.items()]

    @cached_property
    def _any(self) -> re2.Set | None:
        if not self._texts:
            return None
        chosen = options()
        chosen.max_mem = MEMORY
        every = re2.Set.SearchSet(chosen)
        for text in self._texts:
            every.Add((b"(?i:%s)" if text.folds else b"%s") % re2.escape(text.text))
        every.Compile()
        return every

    def texts_in(self, piece: bytes) -> list[Text]:
        """The texts that a piece has, and that which stands for patterns without any."""
        matched = [self._texts[index] for index in self._any.Match(piece) or ()] if self._any else []
        return [*matched, *(text for text in self._always if text.patterns)]

    def places(self, piece: bytes, text: Text, patterns: Iterable[int], start: int) -> Iterator[int]:
        """Begins of the lines from `start` on that have a text, and that may match any of its `patterns`."""
        searched = piece.lower() if text.folds else piece
        begins: list[int] = []
        position = searched.find(text.text, start) if text.text else len(piece)
        while 0 <= position < len(piece) and len(begins) <= COMMON:
            begins.append(piece.rfind(b"\n", 0, position) + 1)
            position = searched.find(text.text, line_end(piece, position))
        if position < 0:
            yield from begins
            return
        for index in patterns:
            begin = start
            while (match := self._full_pattern(index).search(piece, begin)) is not None:
                yield piece.rfind(b"\n", 0, match.start()) + 1
                begin = line_end(piece, match.start()) + 1

    def tried(self, line: bytes, texts: Sequence[Text]) -> list[int]:
        """The patterns that have one of `texts` that a line has."""
        texts = texts if len(texts) <= MANY else self.texts_in(line)
        return sorted({index for text in texts if text.is_in(line) for index in text.patterns})

    def first_place(self, line: bytes, patterns: Iterable[int]) -> int | None:
        """Where in a line the first of these matches begins, wherever the line's own begin is."""
        matches = (self._full_pattern(index).search(line) for index in patterns)
        return min((match.start() for match in matches if match is not None), default=None)

    def matches(self, index: int, forms: Iterable[bytes]) -> bool:
        """Whether a pattern matches any of a line's forms."""
        if index not in self._compiled:
            self._compiled[index] = _compiled(unnamed(self._patterns[index]))
        return any(map(self._compiled[index].search, forms))

    def _full_pattern(self, index: int) -> re2.Pattern:
        """The pattern for whole logs."""
        if index not in self._anywhere:
            self._anywhere[index] = _compiled(anywhere(self._patterns[index]))
        return self._anywhere[index]


@lru_cache(maxsize=2)
def sieve_of(patterns: tuple[str, ...]) -> Sieve:
    """The sieve of these patterns: the next log finds what the last one had compiled."""
    return Sieve(patterns)


def _compiled(pattern: str) -> re2.Pattern:
    chosen = options()
    chosen.never_capture = True
    return re2.compile(pattern.encode(), chosen)


def line_end(piece: bytes, position: int) -> int:
    """Where the line ends that has this place."""
    end = piece.find(b"\n", position)
    return len(piece) if end < 0 else end
