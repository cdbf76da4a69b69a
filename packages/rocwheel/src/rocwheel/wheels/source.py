"""Bytes at random access, read in bounded memory and work: of a file, of memory, of deflated data."""

from __future__ import annotations

import io
import os
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rocbase.errors import CheckError
from rocwheel.wheels.marks import LONGEST, PLACE_LIMIT, Passing, marks

CHUNK = 1024 * 1024
"""Bytes read at a time."""

CALL_COST = 4096
"""What one read costs a budget beside its bytes, so that many small reads are bounded too."""

ALLOWANCE = 1024**3
MOST_UNPACKED = 128
"""Work granted to any file, in bytes, and the work granted for each of its bytes."""

BLOCK = 256 * 1024
BLOCKS_KEPT = 24
"""What is kept of inflated data: the blocks that came last."""

BLOCKS_EXPECTED = 128
"""What is kept besides of what was said to be read again."""

NAMES = b"\0.shstrtab\0"
"""What a table of section names holds."""


class Budget:
    """Work that a reader may still do, in bytes; a real file needs far less than `for_file` gives."""

    def __init__(self, limit: int, subject: str) -> None:
        self.left = limit
        self._subject = subject

    @classmethod
    def for_file(cls, size: int, subject: str) -> Budget:
        """Enough for a file of `size` bytes that unpacks to many times as much."""
        return cls(ALLOWANCE + MOST_UNPACKED * size, subject)

    def grant(self, size: int) -> None:
        """More work, for another file of `size` bytes that is there on disk."""
        self.left += MOST_UNPACKED * size

    def spend(self, count: int) -> None:
        """Raises CheckError where nothing is left."""
        self.left -= count + CALL_COST
        if self.left < 0:
            raise CheckError(
                "reading takes far more work than a file of this size should",
                cause="the file is damaged, or is a decompression bomb",
                next_step="get a fresh copy of the file",
                subject=self._subject,
            )


class ByteSource(io.RawIOBase):
    """`size` bytes that can be read at any place; a raw binary file for those who want one."""

    def __init__(self, size: int, budget: Budget, subject: str) -> None:
        super().__init__()
        self.size = size
        self.budget = budget
        self.subject = subject
        self._position = 0

    def read_at(self, offset: int, count: int) -> bytes:
        """Exactly `count` bytes from `offset` on. Raises CheckError where there are not so many."""
        if offset < 0 or count < 0 or offset + count > self.size:
            raise cut_short(self.subject, f"bytes {offset:,} to {offset + count:,} of {self.size:,}")
        self.budget.spend(count)
        data = self._get(offset, count)
        if len(data) != count:
            raise cut_short(self.subject, f"it ends at byte {offset + len(data):,}, not at {self.size:,}")
        return data

    def chunks(self, offset: int, count: int) -> Iterator[bytes]:
        """The same, a MiB at a time."""
        for start in range(offset, offset + count, CHUNK):
            yield self.read_at(start, min(CHUNK, offset + count - start))

    def marks(self, begin: int, end: int, behind: Callable[[], int]) -> Iterator[int]:
        """Every place in bytes `begin` to `end` where GPU code may begin, in order.

        `behind` says before each how far all is known by then: nothing before that is searched.
        """
        tail = b""
        while begin < end:
            data = tail + self.read_at(begin, min(CHUNK, end - begin))
            first = begin - len(tail)
            for mark in marks(data):
                if first + mark >= behind():
                    yield first + mark
            begin = first + len(data)
            tail = data[-LONGEST + 1 :]
            if behind() > begin:
                begin, tail = behind(), b""

    def expect(self, spans: Sequence[tuple[int, int]], names_behind: int) -> None:
        """Hear that these bytes (begin, end) will be read, and a table of section names behind a place.

        Nothing depends on it but how long that takes.
        """

    def expect_bundles(self, on_bundle: Callable[[int, memoryview], None]) -> None:
        """Hear that compressed bundles will be read whole; the same holds.

        Of what goes by before it is asked for, `on_bundle` may hear where a bundle begins, and its bytes.
        """

    def window(self, offset: int, size: int) -> ByteSource:
        """`size` of these bytes, from `offset` on, as a source. Raises CheckError where they lie outside."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise cut_short(self.subject, f"bytes {offset:,} to {offset + size:,} of {self.size:,}")
        return Window(self, offset, size)

    def _get(self, offset: int, count: int) -> bytes:
        raise NotImplementedError

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self.read_at(self._position, max(0, min(len(buffer), self.size - self._position)))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


class FileSource(ByteSource):
    """A file on disk. Read, not mapped: a file that shrinks meanwhile is an error and not a dead process."""

    def __init__(self, path: Path, budget: Budget | None = None, subject: str = "") -> None:
        self._file = path.open("rb", buffering=0)
        size = os.fstat(self._file.fileno()).st_size
        subject = subject or path.name
        super().__init__(size, budget or Budget.for_file(size, subject), subject)

    def _get(self, offset: int, count: int) -> bytes:
        data = os.pread(self._file.fileno(), count, offset)
        while len(data) < count and (
            piece := os.pread(self._file.fileno(), count - len(data), offset + len(data))
        ):
            data += piece
        return data


class MemorySource(ByteSource):
    """Bytes in memory."""

    def __init__(self, data: bytes | memoryview, budget: Budget | None = None, subject: str = "") -> None:
        super().__init__(len(data), budget or Budget.for_file(len(data), subject), subject)
        self._data = data

    def _get(self, offset: int, count: int) -> bytes:
        return bytes(self._data[offset : offset + count])


class Window(ByteSource):
    """A part of another source."""

    def __init__(self, source: ByteSource, offset: int, size: int, subject: str = "") -> None:
        super().__init__(size, source.budget, subject or source.subject)
        self._whole = source
        self._offset = offset

    def _get(self, offset: int, count: int) -> bytes:
        return self._whole.read_at(self._offset + offset, count)

    def marks(self, begin: int, end: int, behind: Callable[[], int]) -> Iterator[int]:
        base = self._offset
        for mark in self._whole.marks(base + begin, base + end, lambda: base + behind()):
            yield mark - base


class Inflated(ByteSource):
    """Deflated data, inflated from the beginning as far as is asked for; going far back begins anew.

    An ELF file's section table lies at its end. What is looked for after that, the heads of bundles and of
    code objects, is kept as it goes by (see `marks`): a library is read in one pass and a few MiB of memory,
    whatever its size. `size` and `crc` are what the archive claims; data that
    differ raise CheckError.
    """

    def __init__(self, packed: ByteSource, size: int, crc: int, subject: str) -> None:
        super().__init__(size, packed.budget, subject)
        from isal import isal_zlib

        from rocwheel.wheels.inflating import Inflating

        self._new_pass = Inflating
        self._crc32 = isal_zlib.crc32
        self._packed = packed
        self._crc = crc
        self._expected: set[int] = set()
        self._pinned: dict[int, bytes] = {}
        self._names_behind = size
        self._seen = 0
        self._before = b""
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self._passing = Passing()
        self._restart()

    def expect(self, spans: Sequence[tuple[int, int]], names_behind: int) -> None:
        for begin, end in spans:
            self._expected.update(range(begin // BLOCK, -(-min(end, self.size) // BLOCK)))
        self._names_behind = names_behind
        for number in self._expected & self._blocks.keys():
            self._pin(number, self._blocks[number])

    def expect_bundles(self, on_bundle: Callable[[int, memoryview], None]) -> None:
        self._passing.keep_whole(on_bundle)

    def _pin(self, number: int, data: bytes) -> None:
        if len(self._pinned) < BLOCKS_EXPECTED:
            self._pinned[number] = data

    def _pin_expected(self, number: int, data: bytes) -> None:
        """Keep a block that goes by for the first time, if it is expected or has to do with names."""
        behind = number * BLOCK + len(data) > self._names_behind
        if behind and (NAMES in data or NAMES in self._before + data[: len(NAMES)]):
            self._expected |= {number, number + 1}
            if number - 1 in self._blocks:
                self._pin(number - 1, self._blocks[number - 1])
        self._before = data[-len(NAMES) :]
        if number in self._expected:
            self._pin(number, data)

    def _restart(self) -> None:
        self._inflate = self._new_pass(self._packed.chunks(0, self._packed.size), BLOCK)
        self._next = 0
        self._sum = 0

    def marks(self, begin: int, end: int, behind: Callable[[], int]) -> Iterator[int]:
        if begin < end and self._seen < -(-end // BLOCK):
            self._block((end - 1) // BLOCK)
        positions = self._passing.found
        passed = [(first, min(last, end)) for first, last in self._passing.passed_over if first < end]
        for first, last in [*passed, (end, end)]:
            index = bisect_left(positions, begin)
            while index < len(positions) and positions[index] < first:
                if positions[index] >= behind():
                    yield positions[index]
                index += 1
            # what was passed over as part of a bundle is searched after all where it is none
            begin = max(begin, first, behind())
            if begin < last:
                yield from super().marks(begin, last, behind)
            begin = max(begin, last)

    def _get(self, offset: int, count: int) -> bytes:
        if (cached := self._passing.cached(offset, count)) is not None:
            return cached
        parts = []
        end = offset + count
        while offset < end:
            number, skip = divmod(offset, BLOCK)
            part = self._block(number)[skip : skip + end - offset]
            parts.append(part)
            offset += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _block(self, number: int) -> bytes:
        if (block := self._pinned.get(number) or self._blocks.get(number)) is not None:
            return block
        if number < self._next:
            self._restart()
        while self._next <= number:
            data = self._inflate_block(min(BLOCK, self.size - self._next * BLOCK))
            if self._next == self._seen:
                self._passing.see(self._next * BLOCK, data)
                if len(self._passing.found) > PLACE_LIMIT:
                    raise damaged(self.subject, f"more than {PLACE_LIMIT:,} places in it begin like GPU code")
                self._pin_expected(self._next, data)
                self._seen += 1
            self._blocks[self._next] = data
            self._next += 1
            if len(self._blocks) > BLOCKS_KEPT:
                self._blocks.popitem(last=False)
        return data

    def _inflate_block(self, size: int) -> bytes:
        """The next `size` bytes."""
        data = self._inflated()
        if len(data) < size:
            raise cut_short(self.subject, f"it decompresses to less than {self.size:,} bytes")
        self.budget.spend(size)
        self._sum = self._crc32(data, self._sum)
        if self._next * BLOCK + size == self.size and (len(data) > size or self._inflated()):
            raise damaged(self.subject, f"it decompresses to more than {self.size:,} bytes")
        if self._next * BLOCK + size == self.size and self._sum != self._crc:
            raise damaged(self.subject, "its checksum (CRC-32) does not match its content")
        return data

    def _inflated(self) -> bytes:
        try:
            data = self._inflate.block()
        except CheckError:
            raise
        except Exception as error:  # IsalError, which has no type
            raise damaged(self.subject, f"it cannot be decompressed: {error}") from error
        if len(data) < BLOCK and not self._inflate.is_whole:
            raise cut_short(self.subject, "its compressed data end early")
        return data


def cut_short(subject: str, reason: str) -> CheckError:
    return damaged(subject, f"it is truncated: {reason}")


def damaged(subject: str, reason: str) -> CheckError:
    """What a file that cannot be read raises."""
    return CheckError(
        f"{subject or 'the file'} cannot be read: {reason}",
        cause="the file is truncated or damaged, or its tables are wrong",
        next_step="build the file again, or get a fresh copy",
        subject=subject,
    )
