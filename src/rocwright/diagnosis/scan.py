"""Where in a log does each signature appear first? One pass, all signatures at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import re2

from rocwheel.units import printable
from rocwright.catalog.issue import (
    ErrorLine,
    Issue,
    Signature,
    any_of,
    anywhere,
    bare,
    options,
    stamps,
    unnamed,
)
from rocwright.diagnosis.read_log import MOST_LINES

MOST_WIDE, _BEGIN, _AHEAD = 300, 96, 40
"""Characters shown of a line, of its begin where what was found stands further on, and before that."""

LONGEST = 16 * 1024
"""Bytes of a line that are tried against each signature, around the place where one matched."""

AGAIN = 64
"""Matching lines after which signatures already found are looked for no more."""

AROUND = 20
"""Lines before the one with which a failure begins that belong to it."""

MEMORY = 64 * 1024 * 1024
"""Bytes for what RE2 remembers of its way: with a quarter of it, it forgets and begins anew all the time."""


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


class Glance(NamedTuple):
    """Where a pattern matches first in a piece; None where it does not."""

    pattern: re2.Pattern | None
    match: re2.Match | None


class Scan:
    """Looks for signatures in a log that comes in pieces of whole lines; `hits` tells what was found.

    `began` is the line from which on a program says that its failure is told (0: none did): signatures found
    before are sought anew from there on, for what came before was got over.
    """

    def __init__(
        self,
        signatures: Iterable[Signature],
        before: Sequence[str] = (),
        calm: Sequence[str] = (),
        quoted: Sequence[str] = (),
    ) -> None:
        self.lines = self.size = self.began = 0
        self._stamp = stamps(before)
        self._calm, self._quoted = any_of(calm), any_of(quoted)
        self._looked_for = tuple(signatures)
        self._found: dict[str, Hit] = {}
        self._before: dict[str, Hit] = {}
        self._last = b""
        self._compile()

    @property
    def hits(self) -> list[Hit]:
        """What was found, in the order of the log; on one line in that of the signatures."""
        return sorted({**self._before, **self._found}.values(), key=lambda hit: hit.line)

    def glance(self, piece: bytes, at: int = 0) -> Glance:
        """The search that `feed` begins a piece with, for threads: RE2 lets others run meanwhile."""
        pattern = self._any
        return Glance(pattern, pattern.search(piece, at) if pattern is not None else None)

    def feed(self, piece: bytes, glance: Glance | None = None) -> None:
        """Search in one more piece: whole, clean lines. A `glance` for other patterns is done again."""
        for hit in (*self._before.values(), *self._found.values()):
            if hit.wanted:
                self._follow(hit, piece, 0)
        if glance is None or glance.pattern is not self._any:
            glance = self.glance(piece)
        counted, line, match = 0, self.lines, glance.match
        while match is not None:
            begin = piece.rfind(b"\n", 0, match.start()) + 1
            end = piece.find(b"\n", match.start())
            end = len(piece) if end < 0 else end
            line += _ends(piece[counted:begin])
            counted = begin
            window = slice(max(begin, match.start() - LONGEST // 2), min(end, match.start() + LONGEST // 2))
            for one in self._in_line(piece[window]):
                if self._is_sought(one, piece[window]):
                    self._note(one, piece, begin, end, line + 1, match.start() - begin)
                if isinstance(one, ErrorLine) and one.begins and not self.began:
                    self._begin(line + 1)
            at = end + 1
            self._matched += 1
            if self._matched >= AGAIN and len(self._found) > self._compiled:
                self._compile()
            match = self.glance(piece, at).match if at < len(piece) else None
        self.lines += _ends(piece)
        self.size += len(piece)
        self._last = piece[-8 * MOST_WIDE :]

    def _begin(self, line: int) -> None:
        """From here on everything is sought once more."""
        self.began = line = max(1, line - AROUND)
        self._before = {name: hit for name, hit in self._found.items() if hit.line < line}
        self._found = {name: hit for name, hit in self._found.items() if hit.line >= line}
        self._compile()

    def _compile(self) -> None:
        """One expression for what was not found yet; it says where, the set then says which."""
        self._matched, self._compiled = 0, len(self._found)
        chosen = options()
        chosen.max_mem = MEMORY
        chosen.never_capture = True
        self._all = re2.Set.SearchSet(chosen)
        self._each: list[Signature] = []
        missing = []
        for one in self._looked_for:
            found = one.name in self._found and not self._found[one.name].quoted
            if found and one.role != "follows":
                continue
            for pattern in one.patterns:
                self._all.Add(unnamed(pattern).encode())
                self._each.append(one)
                if not found:
                    missing.append(anywhere(pattern).encode())
        if self._each:
            self._all.Compile()
        self._any = re2.compile(b"|".join(missing), chosen) if missing else None

    def _in_line(self, line: bytes) -> list[Signature]:
        """What a line has; where it follows from another, or is calm, it is no error by itself."""
        own = bare(line, self._stamp)
        forms = dict.fromkeys((line, own, own.lstrip(b" \t")))
        indices = {index for form in forms for index in self._all.Match(form) or ()}
        found = {self._each[index].name: self._each[index] for index in sorted(indices)}.values()
        follows = any(one.role == "follows" for one in found)
        calm = self._calm is not None and bool(self._calm.search(line) or self._calm.search(own))
        return [one for one in found if not ((follows or calm) and _general(one) and one.role in _SILENCED)]

    def _is_sought(self, one: Signature, line: bytes) -> bool:
        """Whether it was not found yet, or only in a line of source that a traceback shows."""
        found = self._found.get(one.name)
        return found is None or (found.quoted and not self._is_source(line))

    def _is_source(self, line: bytes) -> bool:
        return self._quoted is not None and bool(self._quoted.search(bare(line, self._stamp)))

    def _note(self, signature: Signature, piece: bytes, begin: int, end: int, line: int, at: int) -> None:
        above = (
            self._last[self._last.find(b"\n") + 1 :] + piece[max(0, begin - 8 * MOST_WIDE) : begin]
        ).splitlines()
        before = signature.before if isinstance(signature, ErrorLine) else 0
        text = shown(piece[begin:end], self._stamp, self._own_place(signature, piece[begin:end], at))
        told = [shown(one, self._stamp) for one in above[len(above) - before :]] if before else []
        source = self._is_source(piece[begin : min(end, begin + LONGEST)])
        hit = Hit(signature, line, text, [*told, text], MOST_LINES - 1, source)
        self._found[signature.name] = hit
        self._follow(hit, piece, end + 1)

    def _own_place(self, signature: Signature, line: bytes, at: int) -> int:
        """Where in a long line this signature stands: `at` is where the first of all does."""
        if len(line) <= MOST_WIDE:
            return at
        own, start = any_of([unnamed(one) for one in signature.patterns]), max(0, at - LONGEST // 2)
        found = own.search(line[start : at + LONGEST // 2]) if own is not None else None
        return start + found.start() if found is not None else at

    def _follow(self, hit: Hit, piece: bytes, at: int) -> None:
        """Lines that follow it, as far as this piece has them."""
        while hit.wanted and at < len(piece):
            end = piece.find(b"\n", at)
            end = len(piece) if end < 0 else end
            hit.lines.append(shown(piece[at:end], self._stamp))
            hit.wanted -= 1
            at = end + 1


def _ends(piece: bytes) -> int:
    """How many lines end in it: three times as fast as bytes.count, which looks at each byte by itself."""
    return len(piece) - len(piece.replace(b"\n", b""))


def shown(line: bytes, stamp: re2.Pattern | None, at: int = 0) -> str:
    """A line as it is shown: without its time, cut, and nothing in it that a terminal would obey. `at` is
    where in it something was found, in bytes: that much of a long line is shown as well."""
    text = _readable(bare(line[:LONGEST], stamp))
    if at > MOST_WIDE // 2 and (len(text) > MOST_WIDE or len(line) > LONGEST):
        text = f"{text[:_BEGIN]}...{_readable(line[at - _AHEAD :])}"
    return text if len(text) <= MOST_WIDE else f"{text[: MOST_WIDE - 3]}..."


def _readable(line: bytes) -> str:
    return printable(line[: 4 * MOST_WIDE].decode(errors="replace").rstrip(), keep="\t")


_SILENCED = ("cause", "likely")
"""Roles that a calm line, or one that follows from another, takes from what is only general."""


def _general(one: Signature) -> bool:
    """Whether a line alone does not say that this is meant."""
    return isinstance(one, ErrorLine) or (isinstance(one, Issue) and one.filled is not None)
