"""Pages cut out of an ELF file: what its program and section headers then say.

Addresses stay as they are; a segment with a hole becomes two. A loader maps whole pages, so that only whole
pages can go, and each file offset keeps its place within a page (System V ABI, "Program Loading").
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from rocbase.errors import CheckError
from rocwheel.wheels.elf import Elf, Section, Segment

PT_PHDR = 6
SEGMENT = struct.Struct("<IIQQQQQQ")
"""A program header."""

PAGE = 4096
"""The page of x86-64; larger values of p_align are a linker's precaution (psABI, "Program Loading")."""

Span = tuple[int, int]
"""Begin and end, in bytes of a file or of addresses."""


class Removed:
    """Spans of a file that are to go."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self.spans = sorted((begin, end) for begin, end in spans if begin < end)
        self._begins = [begin for begin, _ in self.spans]
        self._sums = [0, *accumulate(end - begin for begin, end in self.spans)]

    def moved(self, offset: int) -> int:
        """Where a byte comes to lie, or what stood behind it where it goes."""
        index = bisect_right(self._begins, offset)
        inside = max(0, self.spans[index - 1][1] - offset) if index else 0
        return offset + inside - self._sums[index]

    def touches(self, begin: int, end: int) -> bool:
        """Whether a byte between these two goes."""
        if begin >= end:
            return False
        index = bisect_right(self._begins, end - 1) - 1
        return index >= 0 and self.spans[index][1] > begin


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The tables of the file that remains."""

    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]
    removed: Removed


def spans_of_holes(file: Elf, holes: Sequence[Span]) -> list[Span]:
    """The bytes of the file that lie at these addresses, of each hole as many as fill pages.

    Each hole lies within one segment.
    """
    spans = []
    for begin, end in holes:
        offset = offset_of(file.segments, begin, file.source.subject)
        spans.append((offset, offset + (end - begin) // PAGE * PAGE))
    return spans


def cut(
    file: Elf,
    *,
    holes: Sequence[Span],
    sections: Sequence[Section],
    also: Sequence[Span],
    table_at: int | None,
) -> Cut:
    """The tables once the pages at `holes` (addresses) and the bytes `also` (of the file) are gone.

    `sections` are the headers with sizes that are right already; `table_at` is the address of the program
    headers where there are more of them than before. Raises CheckError where something else needs the bytes.
    """
    removed = Removed([*spans_of_holes(file, holes), *also])
    for section in sections:
        if section.has_bytes and removed.touches(section.offset, section.offset + section.size):
            raise cannot(
                file.source.subject, f"section {section.name} shares its bytes with the code to be removed"
            )
    segments = [piece for segment in file.segments for piece in _without_holes(segment, holes)]
    for piece in segments:
        if removed.touches(piece.offset, piece.offset + piece.file_size):
            raise cannot(
                file.source.subject, f"a segment at address {piece.address:#x} shares its bytes with it"
            )
    moved = [_moved(segment, removed) for segment in segments]
    if table_at is not None:
        moved = [
            _table(segment, moved, table_at, file.source.subject) if segment.kind == PT_PHDR else segment
            for segment in moved
        ]
    return Cut(
        segments=tuple(moved),
        sections=tuple(replace(section, offset=removed.moved(section.offset)) for section in sections),
        removed=removed,
    )


def offset_of(segments: Iterable[Segment], address: int, subject: str) -> int:
    """Where in the file the byte at this address lies. Raises CheckError where none is loaded there."""
    for segment in segments:
        if segment.is_loaded and segment.address <= address < segment.address + segment.file_size:
            return address - segment.address + segment.offset
    raise cannot(subject, f"no part of the file is loaded at {address:#x}")


def _without_holes(segment: Segment, holes: Sequence[Span]) -> list[Segment]:
    if not segment.is_loaded:
        return [segment]
    pieces = [segment]
    for begin, end in sorted(holes):
        last = pieces[-1]
        skip = begin - last.address
        if not (skip >= 0 and end <= last.address + last.file_size):
            continue
        behind = end - last.address
        following = last._replace(
            offset=last.offset + behind,
            address=end,
            physical_address=(last.physical_address + behind) % (1 << 64),
            file_size=last.file_size - behind,
            memory_size=last.memory_size - behind,
        )
        pieces[-1:] = [last._replace(file_size=skip, memory_size=skip), following]
    return [piece for piece in pieces if piece.memory_size] or pieces[:1]


def _moved(segment: Segment, removed: Removed) -> Segment:
    offset = removed.moved(segment.offset)
    fits = segment.alignment < 2 or (offset - segment.address) % segment.alignment == 0
    keeps = not segment.is_loaded or fits
    return segment._replace(offset=offset, alignment=segment.alignment if keeps else PAGE)


def _table(segment: Segment, segments: Sequence[Segment], address: int, subject: str) -> Segment:
    size = len(segments) * SEGMENT.size
    return segment._replace(
        offset=offset_of(segments, address, subject),
        address=address,
        physical_address=address,
        file_size=size,
        memory_size=size,
    )


def cannot(subject: str, reason: str) -> CheckError:
    """What a library raises whose code cannot be taken out."""
    return CheckError(
        f"the code cannot be removed: {reason}",
        cause="the library was linked or edited in a way that rocwheel does not know",
        next_step="leave this library as it is, or build it for these targets only",
        subject=subject,
    )
