"""What is new in a log: lines that a good log of the same step has no like of, the likeliest cause first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import re2

from rocbase.model import Frozen
from rocbase.units import printable
from rocwright.catalog.issue import any_of, bare, options, stamps, the_issues

# New lines that are told.
MOST_TOLD = 12

# Characters told of a line.
MOST_WIDE = 300

# Different lines that are kept of each log; those after it count as known: no alarm without a reason.
MOST_KNOWN = 300_000

# New lines whose words say something of a failure that are kept, to be ordered at the end.
_MOST_KEPT = 20_000

# Bytes of a line that are compared.
_LONGEST = 4096

_DIGITS = b"0123456789"

# what changes from run to run, beside digits: folders, hashes, how wide gaps are; the names of files stay
_CHANGES = re.compile(
    rb"(?:/[^/\s:'\"()=,;]+)+/|\b0x[0-9a-f]+|\b[0-9a-f]{7,}\b|[0-9]+(?:[.:,][0-9]+)*|[ \t]+"
)


def _words(*words: str) -> re2.Pattern:
    return re2.compile(f"(?i){'|'.join(words)}".encode(), options())


# how much a word says of a failure
_WORDS: tuple[tuple[int, re2.Pattern], ...] = (
    (
        8,
        _words(
            r"\b(?:fatal )?error\b\s*[:\[]",
            r"(?-i:^E:? )",
            r"(?-i:\bFAILED\b)",
            r"\bCMake Error\b",
            r"\*\*\* ",
        ),
    ),
    (6, _words("undefined (?:reference|symbol)", "cannot find", "no such file", "not found", "unable to")),
    (6, _words("segmentation fault", "core dumped", r"\babort(?:ed)?\b", "terminate called")),
    (6, _words("out of memory", r"\bkilled\b")),
    (5, _words(r"^\s*(?:[a-z_]\w*\.)*\w+(?:Error|Exception)\b")),
    (
        4,
        _words(
            r"\bfail(?:ed|s)?\b", r"\bfailures?\b", r"\bfatal\b", r"\binvalid\b", r"\bun(?:supported|known)\b"
        ),
    ),
    (4, _words(r"\bdenied\b", r"\brefused\b", r"\bmismatch", r"\bincompatible\b")),
    (3, _words(r"\berrors?\b", r"\b(?:can|could)(?:n't|not)\b", r"\bmissing\b", r"\btimed? ?out\b")),
    (1, _words(r"\bwarning\b")),
)

_ANY_WORD = re2.compile(b"|".join(words.pattern for _, words in _WORDS), options())

# How much the level of a line that is no error takes back.
_CALMED = 6

_FOLLOWS = _words(
    r"^(?:ninja|g?make)(?:\[\d+\])?: ",
    "^FAILED: ",
    "subprocess-exited",
    "failed (?:building|to build)",
    "CalledProcessError",
    "returned non-zero",
    "exit(?:ed with)? (?:code|status)",
    "configuring incomplete",
    "ld returned",
)
# How much is taken from a line that only tells that something before it failed.
_FOLLOWED = 5


@cache
def _calm() -> re2.Pattern | None:
    """Lines that say of themselves that they are no error."""
    return any_of(the_issues()[1].calm)


@cache
def _stamp() -> re2.Pattern | None:
    """What finds the time, and who says it, at the begin of a line."""
    return stamps(the_issues()[1].before)


class NewLine(Frozen):
    """A line that is new, without its time, numbered from 1, and how much its words say of a failure."""

    line: int
    text: str
    weight: int


# From so many new lines on, a good log with not a tenth as many of the others is of something else.
FEW = 10


class Novelty(Frozen):
    """How many lines of a log are new, and of these the ones that say most of a failure, the likeliest first;
    `left_out` is how many bytes at the begin of the log were not looked at, `alike` how many kinds of its
    lines the good log has too."""

    count: int
    lines: tuple[NewLine, ...]
    left_out: int = 0
    alike: int = 0

    @property
    def strange(self) -> bool:
        """Whether the good log has so little of this one that it is hardly of the same step."""
        return self.count >= FEW and self.alike * FEW < self.count


def template(line: bytes) -> bytes:
    """What stays of a line from run to run."""
    return _CHANGES.sub(b"#", line[:_LONGEST])


def novelty(
    failed: Iterable[bytes], good: Iterable[bytes], *, skipped: int = 0, left_out: int = 0
) -> Novelty:
    """Compare two logs, each in pieces of whole, clean lines; lines alike count once.

    `skipped` lines and `left_out` bytes of the failed one are not among its pieces.
    """
    marks = {hash(b""), hash(b"#")}
    good_ones = {hash(template(line)) for _, line in _different(good, 0)} - marks
    alike = 0
    telling: list[_Line] = []
    plain: list[_Line] = []
    count, last = 0, skipped
    for last, line in _different(failed, skipped):
        mark = hash(template(line))
        alike += mark in good_ones
        if mark in marks or mark in good_ones:
            continue
        marks.add(mark)
        count += 1
        points = weight(line[:_LONGEST])
        retained, limit = (telling, _MOST_KEPT) if points else (plain, MOST_TOLD)
        if len(retained) < limit:
            retained.append(_Line(points, last, bare(line[:_LONGEST], _stamp())[: 4 * MOST_WIDE]))
    # a line that says nothing of a failure is told where no other does
    best = sorted(
        telling or plain,
        key=lambda candidate: (-candidate.weight, -(10 * candidate.at // max(last, 1)), candidate.at),
    )
    return Novelty(
        count=count,
        lines=tuple(
            NewLine(
                line=candidate.at,
                text=printable(candidate.line.decode(errors="replace"))[:MOST_WIDE],
                weight=candidate.weight,
            )
            for candidate in best[:MOST_TOLD]
        ),
        left_out=left_out,
        alike=alike,
    )


class _Line(NamedTuple):
    weight: int
    at: int
    line: bytes


def weight(line: bytes) -> int:
    """How much the words of a line say of a failure, with and without what stands before them; 0 for
    nothing."""
    says = _forms(line)
    score = max((points for points, words in _WORDS if any(map(words.search, says))), default=0)
    if not score:
        return 0
    calm = _CALMED if (pattern := _calm()) is not None and any(map(pattern.search, says)) else 0
    return max(0, score - calm - (_FOLLOWED if follows(line) else 0))


def has_words(line: bytes) -> bool:
    """Whether any word of a line says something of a failure, whatever the line's level."""
    return any(map(_ANY_WORD.search, _forms(line)))


def follows(line: bytes) -> bool:
    """Whether a line only tells that something before it failed."""
    return any(map(_FOLLOWS.search, _forms(line)))


def _forms(line: bytes) -> tuple[bytes, ...]:
    """A line with and without what stands before it."""
    own = bare(line, _stamp())
    return (line, own) if own != line else (line,)


def _different(pieces: Iterable[bytes], skipped: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a log that differ by more than digits, the first of each kind, with their numbers."""
    marks: set[int] = set()
    number = skipped
    for piece in pieces:
        lines = piece.split(b"\n")
        for index, kind in enumerate(piece.translate(None, _DIGITS).split(b"\n")[:-1]):
            mark = hash(kind)
            if mark not in marks and len(marks) < MOST_KNOWN:
                marks.add(mark)
                yield number + index + 1, lines[index]
        number += len(lines) - 1
