"""Where in a log does each signature appear first? One pass, all signatures at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import re2

from rocbase.units import printable
from rocwright.catalog.issue import (
    ErrorLine,
    Issue,
    Signature,
    any_of,
    bare,
    stamps,
    unnamed,
)
from rocwright.diagnosis.read_log import MOST_LINES
from rocwright.diagnosis.sieve import Text, line_end, sieve_of

# Characters shown of a line, of its begin where what was found stands further on, and before that.
MOST_WIDE, _BEGIN, _AHEAD = 300, 96, 40

# Bytes of a line that are tried against each signature, around the place where one matched.
LONGEST = 16 * 1024

# Lines before the one with which a failure begins that belong to it.
AROUND = 20


@dataclass(slots=True)
class Hit:
    """The first line with a signature: its number from 1, its text, and `lines` around it to be shown."""

    signature: Signature
    line: int
    text: str
    lines: list[str] = field(default_factory=list)
    wanted: int = 0
    """How many lines that follow it are still to come."""
    quoted: bool = False
    """Whether its line is a program's source, as a traceback shows it: what is meant may still come."""


class Scan:
    """Looks for signatures in a log that comes in pieces of whole lines; `hits` tells what was found.

    `began` is the line from which on a program says that its failure is told (0: none did): signatures found
    before are sought anew from there on, for what came before was got over.
    """

    def __init__(
        self,
        signatures: Iterable[Signature],
        prefixes: Sequence[str] = (),
        calm: Sequence[str] = (),
        quoted: Sequence[str] = (),
    ) -> None:
        self.lines = self.size = self.began = 0
        self._stamp = stamps(prefixes)
        self._calm, self._quoted = any_of(calm), any_of(quoted)
        self._found: dict[str, Hit] = {}
        self._before: dict[str, Hit] = {}
        self._last = b""
        self._owners = [(signature, text) for signature in signatures for text in signature.patterns]
        self._sieve = sieve_of(tuple(text for _, text in self._owners))

    @property
    def hits(self) -> list[Hit]:
        """What was found, in the order of the log; on one line in that of the signatures."""
        return sorted({**self._before, **self._found}.values(), key=lambda hit: hit.line)

    def feed(self, piece: bytes) -> None:
        """Search in one more piece: whole, clean lines."""
        for hit in (*self._before.values(), *self._found.values()):
            if hit.wanted:
                self._follow(hit, piece, 0)
        texts = self._sieve.texts_in(piece)
        counted, line, position = 0, self.lines, 0
        while texts and position < len(piece):
            began = self.began
            for begin in self._places(piece, texts, position):
                line += _ends(piece[counted:begin])
                counted, end = begin, line_end(piece, begin)
                self._look(piece, begin, end, line + 1, texts)
                position = end + 1
                if self.began != began:
                    break
            else:
                break
        self.lines += _ends(piece)
        self.size += len(piece)
        self._last = piece[-8 * MOST_WIDE :]

    def _places(self, piece: bytes, texts: Sequence[Text], position: int) -> list[int]:
        """Begins of the lines from `position` on that may have what was not found yet."""
        begins: set[int] = set()
        for text in texts:
            missing = [index for index in text.patterns if self._is_missing(index)]
            if missing:
                begins.update(self._sieve.places(piece, text, missing, position))
        return sorted(begins)

    def _look(self, piece: bytes, begin: int, end: int, number: int, texts: Sequence[Text]) -> None:
        """Note what a line has."""
        line = piece[begin:end]
        tried = self._sieve.tried(line, texts)
        missing = [index for index in tried if self._is_missing(index)]
        if not missing:
            return
        position = self._sieve.first_place(line, missing) if len(line) > LONGEST // 2 else 0
        if position is None:
            return
        window = line[max(0, position - LONGEST // 2) : position + LONGEST // 2]
        for signature in self._in_line(window, tried):
            if self._is_sought(signature, window):
                self._note(signature, piece, begin, end, number, missing)
            if isinstance(signature, ErrorLine) and signature.begins and not self.began:
                self._begin(number)

    def _begin(self, line: int) -> None:
        """From here on everything is sought once more."""
        self.began = line = max(1, line - AROUND)
        self._before = {name: hit for name, hit in self._found.items() if hit.line < line}
        self._found = {name: hit for name, hit in self._found.items() if hit.line >= line}

    def _in_line(self, line: bytes, tried: Iterable[int]) -> list[Signature]:
        """What a line has; where it follows from another, or is calm, it is no error by itself."""
        own = bare(line, self._stamp)
        forms = tuple(dict.fromkeys((line, own, own.lstrip(b" \t"))))
        matched = (index for index in tried if self._counts(index) and self._sieve.matches(index, forms))
        signatures = {
            signature.name: signature for signature in (self._owners[index][0] for index in matched)
        }.values()
        follows = any(signature.role == "follows" for signature in signatures)
        calm = self._calm is not None and bool(self._calm.search(line) or self._calm.search(own))
        return [
            signature
            for signature in signatures
            if not ((follows or calm) and _general(signature) and signature.role in _SILENCED)
        ]

    def _counts(self, index: int) -> bool:
        """Whether a pattern says something of a line: what follows does so although it was found before."""
        return self._owners[index][0].role == "follows" or self._is_missing(index)

    def _is_missing(self, index: int) -> bool:
        hit = self._found.get(self._owners[index][0].name)
        return hit is None or hit.quoted

    def _is_sought(self, signature: Signature, line: bytes) -> bool:
        """Whether it was not found yet, or only in a line of source that a traceback shows."""
        hit = self._found.get(signature.name)
        return hit is None or (hit.quoted and not self._is_source(line))

    def _is_source(self, line: bytes) -> bool:
        return self._quoted is not None and bool(self._quoted.search(bare(line, self._stamp)))

    def _note(
        self, signature: Signature, piece: bytes, begin: int, end: int, line: int, missing: Sequence[int]
    ) -> None:
        above = (
            self._last[self._last.find(b"\n") + 1 :] + piece[max(0, begin - 8 * MOST_WIDE) : begin]
        ).splitlines()
        preceding = signature.before if isinstance(signature, ErrorLine) else 0
        text = shown(piece[begin:end], self._stamp, self._own_place(signature, piece[begin:end], missing))
        context = [shown(raw, self._stamp) for raw in above[len(above) - preceding :]] if preceding else []
        source = self._is_source(piece[begin : min(end, begin + LONGEST)])
        hit = Hit(signature, line, text, [*context, text], MOST_LINES - 1, source)
        self._found[signature.name] = hit
        self._follow(hit, piece, end + 1)

    def _own_place(self, signature: Signature, line: bytes, missing: Sequence[int]) -> int:
        """Where in a long line this signature stands; if that is not clear, where the first of all does."""
        if len(line) <= MOST_WIDE:
            return 0
        position = self._sieve.first_place(line, missing) or 0
        own, start = (
            any_of([unnamed(pattern) for pattern in signature.patterns]),
            max(0, position - LONGEST // 2),
        )
        match = own.search(line[start : position + LONGEST // 2]) if own is not None else None
        return start + match.start() if match is not None else position

    def _follow(self, hit: Hit, piece: bytes, position: int) -> None:
        """Lines that follow it, as far as this piece has them."""
        while hit.wanted and position < len(piece):
            end = line_end(piece, position)
            hit.lines.append(shown(piece[position:end], self._stamp))
            hit.wanted -= 1
            position = end + 1


def _ends(piece: bytes) -> int:
    """How many lines end in it: three times as fast as bytes.count, which looks at each byte by itself."""
    return len(piece) - len(piece.replace(b"\n", b""))


def shown(line: bytes, stamp: re2.Pattern | None, position: int = 0) -> str:
    """A line as it is shown: without its time, cut, and nothing in it that a terminal would obey. `position`
    is where in it something was found, in bytes: that much of a long line is shown as well."""
    text = _readable(bare(line[:LONGEST], stamp))
    if position > MOST_WIDE // 2 and (len(text) > MOST_WIDE or len(line) > LONGEST):
        text = f"{text[:_BEGIN]}...{_readable(line[position - _AHEAD :])}"
    return text if len(text) <= MOST_WIDE else f"{text[: MOST_WIDE - 3]}..."


def _readable(line: bytes) -> str:
    return printable(line[: 4 * MOST_WIDE].decode(errors="replace").rstrip(), keep="\t")


# Roles that a calm line, or one that follows from another, takes from what is only general.
_SILENCED = ("cause", "likely")


def _general(signature: Signature) -> bool:
    """Whether a line alone does not say that this is meant."""
    return isinstance(signature, ErrorLine) or (isinstance(signature, Issue) and signature.filled is not None)
