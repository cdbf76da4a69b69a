"""The plain bundle within a compressed one, unpacked forward and in bounded memory as it is read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Protocol, cast

from rocwheel.errors import CheckError
from rocwheel.wheels.source import CHUNK, Source

if TYPE_CHECKING:
    import hashlib

    from zstandard import ZstdDecompressor

LARGEST_WINDOW = 1 << 27
"""Bytes of memory that a zstd frame may ask for."""

HEAD_CHUNK = 16 * 1024
"""Packed bytes read at a time where only the beginning is wanted."""

_of_thread = threading.local()


class Unpacking:
    """Bytes of the plain bundle of `size` bytes that is packed in `packed`.

    `padded` says that other bytes may follow the packed data; `hashes` that their hash will be checked;
    `heads` that little is wanted, so that little is read at a time; `zstd` unpacks nothing else meanwhile.
    """

    def __init__(
        self,
        packed: Source,
        compression: str,
        size: int,
        *,
        padded: bool,
        hashes: bool,
        heads: bool = False,
        zstd: ZstdDecompressor | None = None,
    ) -> None:
        step = HEAD_CHUNK if heads else CHUNK
        if compression == "zlib":
            self._stream: _Stream = _Inflating(packed, step)
        else:
            self._stream = _unpacking_zstd(packed, step, zstd or unpacker())
        self._size = size
        self._padded = padded
        self._budget = packed.budget
        self._subject = packed.subject
        self._md5 = _md5() if hashes else None
        self._position = 0

    def read_at(self, offset: int, count: int) -> bytes:
        """Exactly so many bytes; `offset` lies not before the end of what was read."""
        self._skip(offset - self._position)
        data = b"".join(self._read(count))
        if len(data) != count:
            raise unsound(self._subject, "a bundle is truncated")
        return data

    def finish(self, expected_hash: int | None) -> None:
        """Raises CheckError where there is more or less than the header says, or its hash is another."""
        self._skip(self._size - self._position)
        if not self._padded and self._some(1):
            raise self._wrong_size()
        if self._md5 is not None and int.from_bytes(self._md5.digest()[:8], "little") != expected_hash:
            raise unsound(self._subject, "the hash of a compressed bundle does not match its content")

    def _skip(self, count: int) -> None:
        if sum(map(len, self._read(count))) != count:
            raise self._wrong_size()

    def _read(self, count: int) -> Iterator[bytes]:
        while count and (data := self._some(count)):
            count -= len(data)
            yield data

    def _some(self, most: int) -> bytes:
        try:
            data = self._stream.read(min(most, CHUNK))
        except CheckError:
            raise
        except Exception as error:  # zlib.error, ZstdError
            raise unsound(self._subject, f"a compressed bundle cannot be decompressed: {error}") from error
        self._budget.spend(len(data))
        self._position += len(data)
        if self._md5 is not None:
            self._md5.update(data)
        return data

    def _wrong_size(self) -> CheckError:
        return unsound(self._subject, f"a compressed bundle does not decompress to {self._size:,} bytes")


def _md5() -> hashlib._Hash:
    import hashlib

    return hashlib.md5(usedforsecurity=False)


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Inflating:
    """zlib data, unpacked as they are read, never more at a time than is asked for."""

    def __init__(self, packed: Source, step: int) -> None:
        import zlib

        self._packed = packed
        self._step = step
        self._inflate = zlib.decompressobj()

    def read(self, size: int, /) -> bytes:
        while not self._inflate.eof:
            packed = self._inflate.unconsumed_tail or self._packed.read(self._step)
            data = self._inflate.decompress(packed, size)
            if data:
                return data
            if not packed:
                break
        return b""


def unpacker() -> ZstdDecompressor:
    """What unpacks zstd data, one frame after another; it keeps its memory from one to the next."""
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)


@contextmanager
def unpacker_of_thread(*, keep: bool) -> Iterator[ZstdDecompressor]:
    """The one of this thread; with `keep` the next in it takes it over.

    Memory that the system has to clear anew for each bundle takes as long as to unpack it.
    """
    zstd = getattr(_of_thread, "zstd", None) or unpacker()
    _of_thread.zstd = None
    yield zstd
    if keep:
        _of_thread.zstd = zstd


def _unpacking_zstd(packed: Source, step: int, zstd: ZstdDecompressor) -> _Stream:
    """zstd data, unpacked as they are read."""
    return zstd.stream_reader(cast("IO[bytes]", packed), read_size=step)


def window_size(frame: bytes) -> int:
    """Bytes of memory that a zstd frame asks for; the most that one may where it says nothing sound."""
    import zstandard

    try:
        return min(zstandard.get_frame_parameters(frame).window_size, LARGEST_WINDOW)
    except zstandard.ZstdError:
        return LARGEST_WINDOW


def unsound(subject: str, why: str) -> CheckError:
    """The error for what is no sound bundle."""
    return CheckError(
        f"not a valid offload bundle: {why}",
        cause="the file is truncated, damaged, or written by a compiler that rocwheel does not know",
        next_step="build the file again, or get a fresh copy",
        subject=subject,
    )
