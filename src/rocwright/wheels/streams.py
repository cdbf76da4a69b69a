"""Reading untrusted files in bounded memory and bounded work: a budget, a seekable zip member, a window."""

from __future__ import annotations

import io
import zlib
from collections import OrderedDict
from collections.abc import Callable
from typing import IO, BinaryIO, Protocol, cast

import zstandard

from rocwright.errors import CheckError

CHUNK = 1024 * 1024
"""Bytes read at a time."""

CALL_COST = 4096
"""What one read costs a budget beside its bytes, so that many small reads are bounded too."""

ALLOWANCE = 1024**3
MOST_UNPACKED = 128
"""Work granted to any file, in bytes, and the work granted for each of its bytes."""

BLOCK = 256 * 1024
BLOCKS_KEPT = 32


class Budget:
    """Work that a reader may still do, in bytes; a real file needs far less than `for_file` gives."""

    def __init__(self, limit: int, subject: str) -> None:
        self._left = limit
        self._subject = subject

    @classmethod
    def for_file(cls, size: int, subject: str) -> Budget:
        """Enough for a file of `size` bytes that unpacks to many times as much."""
        return cls(ALLOWANCE + MOST_UNPACKED * size, subject)

    def spend(self, count: int) -> None:
        self._left -= count + CALL_COST
        if self._left < 0:
            raise CheckError(
                "reading takes far more work than a file of this size should",
                cause="the file is damaged, or made to unpack without end",
                next_step="get the file again from where it was built",
                subject=self._subject,
            )


class Reader(Protocol):
    """What bundles are read from: forward only."""

    def read(self, size: int, /) -> bytes: ...


class Metered(io.RawIOBase):
    """A seekable binary file whose every read is paid from a budget."""

    def __init__(self, file: BinaryIO, budget: Budget) -> None:
        super().__init__()
        self._file = file
        self._budget = budget

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self._budget.spend(len(data))
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


class Seekable(io.RawIOBase):
    """A stream that only reads forward, made seekable: recent blocks are kept, going far back reopens it.

    A member of a zip is such a stream. An ELF file's section table lies at its end and its names close by,
    so that reading one takes two passes and a few MiB of memory, whatever the file's size.
    """

    def __init__(self, reopen: Callable[[], BinaryIO], size: int, budget: Budget) -> None:
        super().__init__()
        self._reopen = reopen
        self._size = size
        self._budget = budget
        self._position = 0
        self._source: BinaryIO | None = None
        self._next_block = 0
        self._blocks: OrderedDict[int, bytes] = OrderedDict()

    def read(self, size: int = -1, /) -> bytes:
        end = self._size if size < 0 else min(self._size, self._position + size)
        parts = []
        while self._position < end:
            number, skip = divmod(self._position, BLOCK)
            part = self._block(number)[skip : skip + end - self._position]
            if not part:
                break
            parts.append(part)
            self._position += len(part)
        data = b"".join(parts)
        self._budget.spend(len(data))
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if self._source is not None:
            self._source.close()
        super().close()

    def _block(self, number: int) -> bytes:
        if number in self._blocks:
            return self._blocks[number]
        if self._source is None or number < self._next_block:
            if self._source is not None:
                self._source.close()
            self._source = self._reopen()
            self._next_block = 0
        data = b""
        while self._next_block <= number:
            data = self._source.read(BLOCK)
            self._budget.spend(len(data))
            self._blocks[self._next_block] = data
            self._next_block += 1
            if len(self._blocks) > BLOCKS_KEPT:
                self._blocks.popitem(last=False)
        return data


class Window:
    """The bytes `begin` to `end` of a seekable file, read forward from `begin`."""

    def __init__(self, file: io.RawIOBase, begin: int, end: int) -> None:
        self._file = file
        self.position = begin
        self.end = end

    def read(self, size: int = -1, /) -> bytes:
        self._file.seek(self.position)
        left = self.end - self.position
        data = self._file.read(left if size < 0 else min(size, left)) or b""
        self.position += len(data)
        return data


class Inflating:
    """zlib data from `source`, unpacked as it is read, never more at a time than is asked for."""

    def __init__(self, source: Reader) -> None:
        self._source = source
        self._inflate = zlib.decompressobj()

    def read(self, size: int, /) -> bytes:
        while not self._inflate.eof:
            packed = self._inflate.unconsumed_tail or self._source.read(BLOCK)
            data = self._inflate.decompress(packed, size)
            if data:
                return data
            if not packed:
                break
        return b""


def unpacking_zstd(source: Reader) -> Reader:
    """zstd data from `source`, unpacked as it is read; a frame may ask for a window of 128 MiB at most."""
    return zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
        cast("IO[bytes]", source), read_size=BLOCK
    )
