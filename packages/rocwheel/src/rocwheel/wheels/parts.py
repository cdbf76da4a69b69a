"""A file put together from parts of others, read without being written anywhere."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from rocbase.errors import CheckError
from rocwheel.wheels.source import CHUNK, Budget, ByteSource, MemorySource


@dataclass(frozen=True, slots=True)
class BytePart:
    """`size` bytes of `source` from `offset`; without a source they are zeros."""

    source: ByteSource | None
    offset: int
    size: int

    def read(self, skip: int, count: int) -> bytes:
        """So many of the bytes, from `skip` on."""
        if self.source is None:
            return bytes(count)
        return self.source.read_at(self.offset + skip, count)


def source_part(source: ByteSource) -> BytePart:
    return BytePart(source, 0, source.size)


def bytes_part(content: bytes) -> BytePart:
    return source_part(MemorySource(content))


def zeros(count: int) -> BytePart:
    return BytePart(None, 0, count)


class Joined(ByteSource):
    """Parts one behind another; itself a source."""

    def __init__(self, parts: Sequence[BytePart], subject: str = "") -> None:
        self._parts = [part for part in parts if part.size]
        self._ends = list(accumulate(part.size for part in self._parts))
        size = self._ends[-1] if self._ends else 0
        super().__init__(size, Budget.for_file(size, subject), subject)

    @property
    def parts(self) -> Sequence[BytePart]:
        """What it is made of, one behind another."""
        return self._parts

    def _get(self, offset: int, count: int) -> bytes:
        pieces = []
        index = bisect_right(self._ends, offset)
        while count:
            part = self._parts[index]
            skip = offset - (self._ends[index] - part.size)
            data = part.read(skip, min(count, part.size - skip))
            pieces.append(data)
            offset += len(data)
            count -= len(data)
            index += 1
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def pieces(source: ByteSource) -> Iterator[bytes]:
    """All of it, a MiB at a time."""
    for offset in range(0, source.size, CHUNK):
        yield source.read_at(offset, min(CHUNK, source.size - offset))


def replaced(source: ByteSource, edits: Mapping[int, Sequence[BytePart]]) -> Joined:
    """`source` with other parts in the place of as many of its bytes.

    Raises CheckError where two edits overlap, as they do where a file's tables lie over one another.
    """
    parts: list[BytePart] = []
    position = 0
    for offset, content in sorted(edits.items(), key=lambda item: item[0]):
        if offset < position:
            raise CheckError(
                f"two structures that must be rewritten overlap at byte {offset:,}",
                cause="the file's tables are damaged or deliberately malformed",
                next_step="build the file again, or get a fresh copy",
                subject=source.subject,
            )
        parts += [BytePart(source, position, offset - position), *content]
        position = offset + sum(part.size for part in content)
    return Joined([*parts, BytePart(source, position, source.size - position)], source.subject)


def without(source: ByteSource, spans: Sequence[tuple[int, int]]) -> Joined:
    """`source` without the bytes `begin` to `end` of each span; the spans must not overlap."""
    parts = []
    position = 0
    for begin, end in sorted(spans):
        parts.append(BytePart(source, position, begin - position))
        position = end
    return Joined([*parts, BytePart(source, position, source.size - position)], source.subject)
