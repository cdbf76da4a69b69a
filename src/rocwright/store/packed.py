"""Compressed tars: each is known by the tar within, which versions of libzstd write in different bytes."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import zstandard

from rocbase.files.atomic import CHUNK
from rocbase.files.bounds import TREES, OverBoundError
from rocbase.files.unpacking import Meter, Unpacked, unzstd

LEVEL = 3


class Packing:
    """A tar on its way into a compressed file."""

    def __init__(self, packed: zstandard.ZstdCompressionWriter) -> None:
        self._packed, self._hash = packed, hashlib.sha256()

    def write(self, data: bytes) -> int:
        """Compress the next bytes of the tar."""
        self._hash.update(data)
        return self._packed.write(data)

    @property
    def content(self) -> str:
        """Hex sha256 of what was written, uncompressed."""
        return self._hash.hexdigest()


@contextmanager
def packing(target: Path, *, threads: int = 0) -> Iterator[Packing]:
    """A .tar.zst that is written to `target`, compressed by so many threads beside this one."""
    compressor = zstandard.ZstdCompressor(level=LEVEL, threads=threads)
    with target.open("wb") as file, compressor.stream_writer(file, closefd=False) as packed:
        yield Packing(packed)


class ChunkStream(io.RawIOBase):
    """Chunks as a file that is read once, from its begin."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, into: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._left:
            following = next(self._chunks, None)
            if following is None:
                return 0
            self._left = following
        some, self._left = self._left[: len(into)], self._left[len(into) :]
        into[: len(some)] = some
        return len(some)

    def drain(self) -> None:
        """Read to the end: what the bytes give is known only there."""
        for _ in self._chunks:
            pass


def unpacked(source: IO[bytes]) -> IO[bytes]:
    """The tar in a compressed file, to be read forward; raises ZstdError when it is read where it is damaged,
    OverBoundError where it is larger than any.

    All frames of the file count. Whatever unpacks one reads it by this: what another way of reading would
    leave out could be hidden in it from `content_of`.
    """
    return cast("IO[bytes]", Unpacked(source, Meter(TREES, 0), unzstd))


def content_of(path: Path) -> str:
    """Hex sha256 of the tar in a compressed file; "" where it cannot be unpacked, or is larger than any.

    Memory is bounded.
    """
    hasher = hashlib.sha256()
    try:
        with path.open("rb") as file, unpacked(file) as plain:
            while chunk := plain.read(CHUNK):
                hasher.update(chunk)
    except (zstandard.ZstdError, OverBoundError):
        return ""
    return hasher.hexdigest()
