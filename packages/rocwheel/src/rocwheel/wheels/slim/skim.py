"""A library unpacked in one pass, of which code that is not needed is let go as it comes by.

A plain bundle begins on a page and says in its head where its code objects lie, so that most of a large
library need not be kept. Whoever reads what was let go gets it nevertheless: all is unpacked again.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator

from rocbase.errors import CheckError
from rocwheel.wheels.choose import ProcessorCode, needed
from rocwheel.wheels.devicecode.bundle import ALIGNMENT, LONGEST_ID, MAGIC, MOST_ENTRIES, parse_entry_id
from rocwheel.wheels.devicecode.gpu import HEADER_SIZE
from rocwheel.wheels.parts import BytePart, Joined
from rocwheel.wheels.scratch import Scratch
from rocwheel.wheels.slim.cut import Span
from rocwheel.wheels.slim.wish import Wish
from rocwheel.wheels.source import ByteSource

_ROW = struct.Struct("<QQQ")


def skimmed(
    unpack: Callable[[], Iterable[bytes]], size: int, wish: Wish, aside: Scratch, subject: str
) -> Joined:
    """The `size` bytes that `unpack` gives, as often as it is called; what is kept of them is in `aside`."""
    again = _Again(unpack, size, aside, subject)
    parts: list[BytePart] = []
    position = 0
    unneeded: list[Span] = []
    for piece in unpack():
        unneeded += _unneeded(piece, position, wish)
        offset = 0
        while offset < len(piece):
            while unneeded and unneeded[0][1] <= position + offset:
                del unneeded[0]
            begin, end = (bound - position for bound in unneeded[0]) if unneeded else (len(piece), 0)
            if begin <= offset:
                count = min(end, len(piece)) - offset
                parts.append(BytePart(again, position + offset, count))
            else:
                count = min(begin, len(piece)) - offset
                parts.append(aside.put([piece[offset : offset + count]]))
            offset += count
        position += len(piece)
    return Joined(parts, subject)


class _Again(ByteSource):
    """All of it, unpacked when it is asked for."""

    def __init__(
        self, unpack: Callable[[], Iterable[bytes]], size: int, aside: Scratch, subject: str
    ) -> None:
        super().__init__(size, aside.budget, subject)
        self._unpack = unpack
        self._aside = aside
        self._whole: BytePart | None = None

    def _get(self, offset: int, count: int) -> bytes:
        if self._whole is None:
            self._whole = self._aside.put(self._unpack())
        return self._whole.read(offset, count)


def _unneeded(piece: bytes, position: int, wish: Wish) -> Iterator[Span]:
    """Code objects of the bundles that begin in a piece, without their heads, that `wish` does not need."""
    first = -position % ALIGNMENT
    page = -1
    begins = piece[first::ALIGNMENT]  # of each page; to look through all of it takes as long as to inflate it
    while (page := begins.find(MAGIC[:1], page + 1)) >= 0:
        start = first + page * ALIGNMENT
        if not piece.startswith(MAGIC, start):
            continue
        rows = _rows(piece, start)
        retained, _ = needed([code for code, _, _ in rows], wish.targets, wish.covered)
        for number, (_, offset, size) in enumerate(rows):
            if number not in retained and size > HEADER_SIZE:
                yield position + start + offset + HEADER_SIZE, position + start + offset + size


def _rows(piece: bytes, start: int) -> list[tuple[ProcessorCode, int, int]]:
    """Code, offset and size of a bundle's entries; none where its head is not whole, or in disorder."""
    rows: list[tuple[ProcessorCode, int, int]] = []
    end = start + len(MAGIC) + 8
    (count,) = struct.unpack("<Q", piece[end - 8 : end].ljust(8, b"\0"))
    if count > MOST_ENTRIES:
        return []
    last = 0
    for _ in range(count):
        if end + _ROW.size > len(piece):
            return []
        offset, size, length = _ROW.unpack_from(piece, end)
        name = piece[end + _ROW.size : end + _ROW.size + length]
        if length > LONGEST_ID or len(name) < length or offset < last:
            return []
        try:
            parsed = parse_entry_id(name.decode("ascii", errors="replace"), "")
        except CheckError:
            return []
        if parsed:
            rows.append((ProcessorCode({parsed[0]}, parsed[1]), offset, size))
        last = offset + size
        end += _ROW.size + length
    return rows
