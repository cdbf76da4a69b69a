"""A step's log for a page: whole lines from a place in the file, made harmless, and where phases begin."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rocbase.units import TERMINAL_CODE
from rocwright.diagnosis.masking import masked

# Bytes of a log that one page, or one message to a client, holds at most.
CHUNK = 256 * 1024

# Characters of a line that are shown.
LONGEST = 4000

_STAMP = re.compile(r"^(\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)\.\d{3}Z) ")
_PHASE = re.compile(r"^(?:\$ |guard: |sandbox |installing )")
_ERROR = re.compile(r"(?i)(?:\berror\b|\bfatal\b|FAILED|\bundefined reference\b)")
_WARNING = re.compile(r"(?i)\bwarning\b")


@dataclass(frozen=True, slots=True)
class Line:
    """A line: the time of day, the text, and what it is ("" | phase | error | warning)."""

    time: str
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class LogPart:
    """Some of a log: bytes `start` to `end` of the `size` that it has now."""

    lines: tuple[Line, ...]
    start: int
    end: int
    size: int


def clean_line(text: str, hidden: Iterable[str] = ()) -> Line:
    """A line of a log without terminal codes and secrets; markup is escaped by the template."""
    stamp = _STAMP.match(text)
    content = TERMINAL_CODE.sub("", text[stamp.end() :] if stamp else text)
    content = masked(content, hidden)
    if len(content) > LONGEST:
        content = f"{content[:LONGEST]} ... ({len(content) - LONGEST} characters more)"
    kind = "phase" if _PHASE.match(content) else ""
    kind = kind or ("error" if _ERROR.search(content) else "warning" if _WARNING.search(content) else "")
    return Line(stamp[2] if stamp else "", content, kind)


def read_part(path: Path, start: int, hidden: Iterable[str] = (), limit: int = CHUNK) -> LogPart:
    """Whole lines from byte `start` on; a negative one counts from the end. A line longer than `limit` is
    cut. Where a place is within a line, the next one is the first: of a part of a line it cannot be told
    what is a secret. Nothing where the file is not there (yet)."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            begin = max(0, size + start) if start < 0 else min(start, size)
            data = os.pread(file.fileno(), limit, begin)
            within = _is_within(file.fileno(), begin, limit)
    except FileNotFoundError:
        return LogPart((), 0, 0, 0)
    if within:
        skipped = data.find(b"\n") + 1 or (len(data) if len(data) == limit else 0)
        if not skipped:
            return LogPart((), begin, begin, size)
        data, begin = data[skipped:], begin + skipped
    length = data.rfind(b"\n") + 1
    if length == 0 and len(data) == limit:
        length = len(data)
    hidden = tuple(hidden)
    lines = data[:length].decode(errors="replace").removesuffix("\n").split("\n") if length else []
    return LogPart(tuple(clean_line(line, hidden) for line in lines), begin, begin + length, size)


def _is_within(file: int, place: int, limit: int) -> bool:
    """Whether a place is within a line, and not where a line of more than `limit` bytes is cut."""
    if place == 0 or os.pread(file, 1, place - 1) == b"\n":
        return False
    return place < limit or b"\n" in os.pread(file, limit - 1, place - limit + 1)


def read_from(path: Path, start: int, offset: int, hidden: Iterable[str] = ()) -> tuple[LogPart, Line | None]:
    """A part from byte `start` on, and the line of it that begins at byte `offset`: the first error, where
    that is none of it."""
    part = read_part(path, start, hidden)
    if not part.start <= offset < part.end:
        return part, next((line for line in part.lines if line.kind == "error"), None)
    marked = len(read_part(path, part.start, hidden, offset - part.start).lines) if offset > part.start else 0
    lines = [*part.lines]
    lines[marked] = replace(lines[marked], kind="error")
    return replace(part, lines=tuple(lines)), lines[marked]


def phases(lines: Iterable[Line]) -> Iterator[tuple[str, list[Line]]]:
    """The lines by phase: a title, "" before the first, and what came in it."""
    title, body = "", list[Line]()
    for line in lines:
        if line.kind == "phase":
            if title or body:
                yield title, body
            title, body = line.text, []
        else:
            body.append(line)
    yield title, body
