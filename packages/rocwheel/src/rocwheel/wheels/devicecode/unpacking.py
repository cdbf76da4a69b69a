"""The plain bundle within a compressed one, unpacked forward and in bounded memory as it is read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import mmap
from typing import IO, TYPE_CHECKING, Protocol, cast

from rocbase.errors import CheckError
from rocwheel.wheels.source import CHUNK, ByteSource

if TYPE_CHECKING:
    import hashlib

    from zstandard import ZstdDecompressor

LARGEST_WINDOW = 1 << 27
"""Bytes of memory that a zstd frame may ask for."""

ROOM_STEP = 16 * 1024 * 1024
"""Bytes in steps of which memory is taken for what is unpacked whole; what is not used takes none."""

HEAD_CHUNK = 16 * 1024
"""Packed bytes read at a time where only the beginning is wanted."""


class Unpacking:
    """Bytes of the plain bundle of `size` bytes that is packed in `packed`.

    `padded` says that other bytes may follow the packed data; `hashes` that their hash will be checked;
    `heads` that little is wanted, so that little is read at a time.
    """

    def __init__(
        self,
        packed: ByteSource,
        compression: str,
        size: int,
        *,
        padded: bool,
        hashes: bool,
        heads: bool = False,
    ) -> None:
        step = HEAD_CHUNK if heads else CHUNK
        if compression == "zlib":
            self._stream: _Stream = _Inflating(packed, step)
        else:
            self._stream = _unpacking_zstd(packed, step)
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
            raise _wrong_size(self._subject, self._size)
        if self._md5 is not None and expected_hash is not None:
            _check_hash(self._md5, expected_hash, self._subject)

    def _skip(self, count: int) -> None:
        if sum(map(len, self._read(count))) != count:
            raise _wrong_size(self._subject, self._size)

    def _read(self, count: int) -> Iterator[bytes]:
        while count and (data := self._some(count)):
            count -= len(data)
            yield data

    def _some(self, limit: int) -> bytes:
        try:
            data = self._stream.read(min(limit, CHUNK))
        except CheckError:
            raise
        except Exception as error:  # zlib.error, ZstdError
            raise _cannot(self._subject, error) from error
        self._budget.spend(len(data))
        self._position += len(data)
        if self._md5 is not None:
            self._md5.update(data)
        return data


def _md5() -> hashlib._Hash:
    import hashlib

    return hashlib.md5(usedforsecurity=False)


def _check_hash(md5: hashlib._Hash, expected: int, subject: str) -> None:
    if int.from_bytes(md5.digest()[:8], "little") != expected:
        raise unsound(subject, "the hash of a compressed bundle does not match its content")


def _cannot(subject: str, error: Exception) -> CheckError:
    return unsound(subject, f"a compressed bundle cannot be decompressed: {error}")


def _wrong_size(subject: str, size: int) -> CheckError:
    return unsound(subject, f"a compressed bundle does not decompress to {size:,} bytes")


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Inflating:
    """zlib data, unpacked as they are read, never more at a time than is asked for."""

    def __init__(self, packed: ByteSource, step: int) -> None:
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
    """What unpacks zstd data."""
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)


class Rooms:
    """Memory into which data are unpacked whole; who comes later takes over what others need no more.

    Where there is room for all of them, zstd needs no window of its own and copies nothing: half the time.
    Memory that the system has to clear anew for each bundle takes as long as to unpack it.
    """

    def __init__(self) -> None:
        self._free: list[mmap] = []
        self._lock = threading.Lock()

    @contextmanager
    def unpacked(self, frame: bytes, size: int, source: ByteSource) -> Iterator[Plain]:
        """What a zstd frame unpacks to, which says itself that it is `size` bytes; gone afterwards."""
        room = self._room(size)
        try:
            with memoryview(room) as view, view[:size] as plain:
                try:
                    count = unpacker().stream_reader(frame).readinto(plain)
                except Exception as error:  # ZstdError
                    raise _cannot(source.subject, error) from error
                source.budget.spend(count)
                if count != size:
                    raise _wrong_size(source.subject, size)
                yield Plain(plain, source.subject)
        finally:
            with self._lock:
                self._free.append(room)

    def _room(self, size: int) -> mmap:
        with self._lock:
            fitting = [buffer for buffer in self._free if len(buffer) >= size]
            if fitting:
                room = min(fitting, key=len)
                self._free = [buffer for buffer in self._free if buffer is not room]
                return room
            # what is too small is not kept beside what is large enough
            self._free = []
        # given back to the system when it is let go, as what a thread allocates often is not; and what is
        # not used of it is never cleared
        return mmap(-1, max(1, -(-size // ROOM_STEP)) * ROOM_STEP)


class Plain:
    """The plain bundle, in memory."""

    def __init__(self, data: memoryview, subject: str) -> None:
        self._data = data
        self._subject = subject

    def read_at(self, offset: int, count: int) -> bytes:
        """Exactly so many bytes."""
        data = bytes(self._data[offset : offset + count])
        if len(data) != count:
            raise unsound(self._subject, "a bundle is truncated")
        return data

    def check_hash(self, expected: int) -> None:
        """Raises CheckError where the hash is another."""
        md5 = _md5()
        md5.update(self._data)
        _check_hash(md5, expected, self._subject)


def _unpacking_zstd(packed: ByteSource, step: int) -> _Stream:
    """zstd data, unpacked as they are read."""
    return unpacker().stream_reader(cast("IO[bytes]", packed), read_size=step)


def told_size(frame: bytes) -> int:
    """Bytes to which a zstd frame unpacks, as it says itself; -1 where it does not, or says nothing sound."""
    import zstandard

    try:
        return zstandard.frame_content_size(frame)
    except zstandard.ZstdError:
        return -1


def unsound(subject: str, reason: str) -> CheckError:
    """The error for what is no sound bundle."""
    return CheckError(
        f"not a valid offload bundle: {reason}",
        cause="the file is truncated, damaged, or written by a compiler that rocwheel does not know",
        next_step="build the file again, or get a fresh copy",
        subject=subject,
    )
