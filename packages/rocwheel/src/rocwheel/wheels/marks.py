"""Where in a file GPU code may begin: every place that has a magic number of its containers.

What is found is not yet code: a library of compilers has these words too. Whoever asks reads on from there.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache

BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED = b"CCOB"
KPACK = b"KPAK"
CODE = b"\x7fELF\x02\x01\x01\x40"
"""An ELF header of 64 bits whose operating system is AMDGPU's HSA: its e_ident up to EI_OSABI."""

LONGEST = len(BUNDLE)
PAGE = 4096

HEAD_SIZES = {BUNDLE[:4]: PAGE, COMPRESSED: 64, CODE[:4]: 64}
"""Bytes that tell what begins with these four; of a compressed bundle its header."""

PACKED_HEAD = 128 * 1024
PACKED_HEADS = 32 * 1024 * 1024
"""What is kept besides of the beginning of a compressed bundle, where the list of its entries is; and of all
of them together."""

WHOLE_BUNDLES = 48 * 1024 * 1024
"""The same of all together where compressed bundles are kept whole."""

PLACE_LIMIT = 200_000
"""Places in a file that are remembered, and of which the beginning is kept."""

MOST_ENTRIES = 4096
_ROW = struct.Struct("<QQQ")
_SOURCES = (rb"CCOB[\x01-\x0f]\x00[\x00-\x03]\x00", rb"\x7fELF\x02\x01\x01@", BUNDLE)
_SMALL = 64 * 1024
"""Bytes up to which a search is not worth the loading of RE2."""

_FIRST_BYTES = re.compile(b"[" + b"".join(re.escape(magic[:1]) for magic in HEAD_SIZES) + b"]")


def marks(data: bytes, begin: int = 0, end: int | None = None) -> list[int]:
    """Every place in bytes `begin` to `end` of `data` where code may begin, in order."""
    end = len(data) if end is None else end
    patterns = _patterns_of_re() if end - begin <= _SMALL else _patterns()
    return sorted(match.start() for pattern in patterns for match in pattern.finditer(data, begin, end))


@cache
def _patterns() -> Sequence[re.Pattern[bytes]]:
    # each alone: an alternation is searched a tenth as fast. RE2 takes a third of the time that `re` takes,
    # and lets other threads run meanwhile, as `re` does not
    import re2

    return [re2.compile(source) for source in _SOURCES]


@cache
def _patterns_of_re() -> Sequence[re.Pattern[bytes]]:
    return [re.compile(source) for source in _SOURCES]


class Passing:
    """The same of data that come by piece by piece, whole pages each; and the beginnings, to be read later.

    A bundle that begins on a page says how long it is, and is passed over: most of a large library is that.
    """

    def __init__(self) -> None:
        self.found: list[int] = []
        self.passed_over: list[tuple[int, int]] = []
        self._starts: list[int] = []
        self._kept: list[bytearray] = []
        self._growing: list[tuple[int, bytearray, int]] = []
        self._room = PACKED_HEADS
        self._told: Callable[[int, memoryview], None] | None = None
        self._behind = 0
        self._tail = b""

    def keep_whole(self, on_bundle: Callable[[int, memoryview], None]) -> None:
        """From now on, compressed bundles are kept whole, as far as there is room.

        `on_bundle` hears where each begins, with its bytes, as soon as all of it has come by.
        """
        self._told = on_bundle
        self._room += WHOLE_BUNDLES - PACKED_HEADS

    def see(self, offset: int, data: bytes) -> None:
        """The next piece, which begins at byte `offset`."""
        growing, self._growing = self._growing, []
        for begin, buffer, size in growing:
            buffer.extend(data[: size - len(buffer)])
            self._grown(begin, buffer, size)
        position = max(offset, self._behind)
        begins: list[int] = []
        for match in _FIRST_BYTES.finditer(data[::PAGE]):
            page = offset + match.start() * PAGE
            if data[page - offset : page - offset + 4] not in HEAD_SIZES:
                continue
            if page >= position and (size := _bundle_size(data[page - offset : page - offset + PAGE])):
                begins += self._searched(offset, data, position, page)
                self.found.append(page)
                position = page + size
                self.passed_over.append((page + 1, position))
            begins.append(page)
        begins += self._searched(offset, data, position, offset + len(data))
        self._behind = position
        for begin in sorted(set(begins)):
            self._keep(
                begin, self._tail[begin - offset :] + data if begin < offset else data[begin - offset :]
            )
        self._tail = data[-LONGEST + 1 :] if position <= offset + len(data) - LONGEST else b""

    def cached(self, offset: int, count: int) -> bytes | None:
        """So many bytes, if they are of a beginning that was kept."""
        number = bisect_right(self._starts, offset) - 1
        if number < 0:
            return None
        skip = offset - self._starts[number]
        head = self._kept[number]
        return bytes(memoryview(head)[skip : skip + count]) if skip + count <= len(head) else None

    def _searched(self, offset: int, data: bytes, begin: int, end: int) -> list[int]:
        """The places in bytes `begin` to `end`, and those that begin in the piece before and end here."""
        if begin >= end:
            return []
        places = [offset + mark for mark in marks(data, begin - offset, end - offset)]
        if begin == offset:
            # only where the pieces meet are they joined: a copy of each takes as long as the search
            tail = self._tail
            meeting = marks(tail + data[: min(LONGEST - 1, end - offset)])
            places = [offset - len(tail) + mark for mark in meeting if mark < len(tail)] + places
        self.found += places
        return places

    def _keep(self, begin: int, data: bytes) -> None:
        if len(self._starts) >= PLACE_LIMIT or (self._starts and begin <= self._starts[-1]):
            return
        size = HEAD_SIZES.get(bytes(data[:4]), 0)
        if data.startswith(COMPRESSED):
            claimed = _bundle_size(data[:PAGE]) or PACKED_HEAD
            reserve = claimed if self._told else min(claimed, PACKED_HEAD)
            if reserve <= self._room:
                size = max(size, reserve)
                self._room -= size
        if size:
            buffer = bytearray(data[:size])
            self._starts.append(begin)
            self._kept.append(buffer)
            self._grown(begin, buffer, size)

    def _grown(self, begin: int, buffer: bytearray, size: int) -> None:
        if len(buffer) < size:
            self._growing.append((begin, buffer, size))
        elif self._told and buffer.startswith(COMPRESSED) and size == _bundle_size(buffer[:PAGE]):
            self._told(begin, memoryview(buffer))


def _bundle_size(head: bytes | bytearray) -> int:
    """How long a bundle is that begins so, as it says itself; 0 where it does not, or there is none."""
    if head.startswith(COMPRESSED):
        version = int.from_bytes(head[4:6], "little")
        return {2: int.from_bytes(head[8:12], "little"), 3: int.from_bytes(head[8:16], "little")}.get(
            version, 0
        )
    if not head.startswith(BUNDLE):
        return 0
    end = len(BUNDLE) + 8
    count = int.from_bytes(head[end - 8 : end], "little")
    size = 0
    for _ in range(count if count <= MOST_ENTRIES else 0):
        if end + _ROW.size > len(head):
            return 0
        offset, length, name = _ROW.unpack_from(head, end)
        end += _ROW.size + name
        size = max(size, offset + length)
    return size
