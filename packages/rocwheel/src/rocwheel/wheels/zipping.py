"""Zips written so that the same files give the same bytes: one order of fields, one compressor, one time.

Source of the format: PKWARE's APPNOTE.TXT 6.3.3, sections 4.3 (records), 4.4 (fields) and 4.5.3 (zip64).

The compressor is raw deflate by ISA-L (package isal), level 2, fed CHUNK bytes at a time. Measured in
November 2026: releases 1.5.3 to 1.9.1 of isal give the same bytes; levels 0 to 2 the same on every x86-64
processor with SSE4.2 (2008 on; with qemu's models), level 3 differs with AVX2 and with AVX-512; 64-bit ARM
gives other bytes at every level, and so does feeding it other amounts at a time. zlib's bytes depend on which
zlib Python was linked with: several distributions have zlib-ng in its place. `check_compressor` finds a
machine that differs.
"""

from __future__ import annotations

import hashlib
import stat
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import BinaryIO, Protocol, runtime_checkable

from isal import isal_zlib

from rocbase.errors import CheckError, InternalError
from rocwheel.wheels.hashing import Sha256

CHUNK = 1024 * 1024
LEVEL = 2
EARLIEST = 315532800
"""1980-01-01, the first time that a zip can hold, in seconds since 1970."""
LATEST = 4354819198
"""2107-12-31 23:59:58, the last."""

DEFLATED = 8
_UTF8_NAME = 1 << 11
_ON_UNIX = 3
_ZIP64_VERSION = 45
_VERSION = 20
_ZIP64_TAG = 1
_MAX32 = 0xFFFFFFFF
_MOST_MEMBERS = 0xFFFF
_MOST_NAME = 0xFFFF

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_END = struct.Struct("<4s4H2LH")

_ANSWER = "bffc2aaac74a87f52333fd012af177ed789a50408d18a20f2bd172e703d6992f"


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """What RECORD says of a file: sha256 in hexadecimal and its size in bytes."""

    sha256: str
    size: int


@runtime_checkable
class Stream(Protocol):
    """Bytes that are read from their beginning to their end, as often as asked for."""

    @property
    def size(self) -> int: ...

    def unpacked(self) -> Iterator[bytes]:
        """What it holds; raises CheckError where that is not what it says it is."""
        ...


@runtime_checkable
class Packed(Stream, Protocol):
    """A file that is deflated already, in another zip."""

    @property
    def crc(self) -> int: ...

    def packed(self) -> Iterator[bytes]:
        """The deflated bytes as they lie there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    name: bytes
    mode: int
    crc: int
    size: int
    packed: int
    offset: int


class ZipWriter:
    """Members put one after another into a new, seekable file; `finish` ends it.

    All have the time `epoch` (seconds since 1970, UTC, bounded to what a zip can hold, even seconds); none
    has an extra field but zip64's where its size needs one, a comment, or a data descriptor.
    """

    def __init__(self, file: BinaryIO, epoch: int) -> None:
        self._file = file
        self._time = _dos_time(epoch)
        self._entries: list[_Entry] = []
        self._position = 0

    def add(self, name: str, mode: int, size: int, pieces: Iterable[bytes]) -> Digest:
        """Pack one file of exactly `size` bytes, given in pieces; raises CheckError where they are not."""
        packer = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, -15)
        digest = Sha256()
        crc = count = packed = 0
        header = self._begin(name, size)
        for piece in _even(pieces):
            digest.update(piece)
            crc = isal_zlib.crc32(piece, crc)
            count += len(piece)
            packed += self._file.write(packer.compress(piece))
            if count > size:
                break
        packed += self._file.write(packer.flush())
        if count != size:
            raise _changed(name, size, count)
        self._end(header, mode, crc, size, packed)
        return Digest(sha256=digest.hexdigest(), size=size)

    def copy(self, name: str, mode: int, member: Packed) -> Digest:
        """Put a file that is deflated already as it is; raises CheckError where it is not what it says."""
        digest = Sha256()
        for piece in member.unpacked():
            digest.update(piece)
        header = self._begin(name, member.size)
        count = sum(self._file.write(piece) for piece in member.packed())
        self._end(header, mode, member.crc, member.size, count)
        return Digest(sha256=digest.hexdigest(), size=member.size)

    def finish(self) -> None:
        """Write the central directory."""
        begin = self._position
        directory = 0
        for entry in self._entries:
            directory += self._file.write(self._central(entry))
        count = len(self._entries)
        if count >= _MOST_MEMBERS or max(begin, directory) >= _MAX32:
            end64 = begin + directory
            self._file.write(
                _END64.pack(
                    b"PK\6\6",
                    44,
                    _ON_UNIX << 8 | _ZIP64_VERSION,
                    _ZIP64_VERSION,
                    0,
                    0,
                    count,
                    count,
                    directory,
                    begin,
                )
            )
            self._file.write(_LOCATOR64.pack(b"PK\6\7", 0, end64, 1))
        few = min(count, _MOST_MEMBERS)
        self._file.write(_END.pack(b"PK\5\6", 0, 0, few, few, min(directory, _MAX32), min(begin, _MAX32), 0))

    def _begin(self, name: str, size: int) -> tuple[bytes, bool]:
        encoded = name.encode()
        if len(encoded) > _MOST_NAME:
            raise CheckError(
                f"a file's name is {len(encoded):,} bytes long; a zip can hold {_MOST_NAME:,}",
                cause="it was made by hand or by a faulty tool",
                next_step="give it a shorter name",
            )
        # Deflate can make a file a little larger; which form is taken must not depend on how much.
        large = size + size // 1000 + 4096 >= _MAX32
        self._file.write(bytes(_LOCAL.size + len(encoded) + (20 if large else 0)))
        return encoded, large

    def _end(self, header: tuple[bytes, bool], mode: int, crc: int, size: int, packed: int) -> None:
        name, large = header
        entry = _Entry(name=name, mode=mode, crc=crc, size=size, packed=packed, offset=self._position)
        extra = struct.pack("<2H2Q", _ZIP64_TAG, 16, size, packed) if large else b""
        sizes = (_MAX32, _MAX32) if large else (packed, size)
        self._file.seek(self._position)
        self._file.write(
            _LOCAL.pack(
                b"PK\3\4",
                _ZIP64_VERSION if large else _VERSION,
                _flags(name),
                DEFLATED,
                *self._time,
                crc,
                *sizes,
                len(name),
                len(extra),
            )
        )
        self._file.write(name + extra)
        self._position = self._file.seek(packed, 1)
        self._entries.append(entry)

    def _central(self, entry: _Entry) -> bytes:
        wide = [value for value in (entry.size, entry.packed, entry.offset) if value >= _MAX32]
        extra = struct.pack(f"<2H{len(wide)}Q", _ZIP64_TAG, 8 * len(wide), *wide) if wide else b""
        version = _ZIP64_VERSION if wide else _VERSION
        return (
            _CENTRAL.pack(
                b"PK\1\2",
                _ON_UNIX << 8 | version,
                version,
                _flags(entry.name),
                DEFLATED,
                *self._time,
                entry.crc,
                min(entry.packed, _MAX32),
                min(entry.size, _MAX32),
                len(entry.name),
                len(extra),
                0,
                0,
                0,
                (stat.S_IFREG | entry.mode) << 16,
                min(entry.offset, _MAX32),
            )
            + entry.name
            + extra
        )


@cache
def check_compressor() -> None:
    """Raise CheckError where this machine's compressor gives other bytes than those written down here."""
    packer = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, -15)
    digest = hashlib.sha256()
    for piece in _even(_probe()):
        digest.update(packer.compress(piece))
    digest.update(packer.flush())
    if digest.hexdigest() != _ANSWER:
        raise CheckError(
            "the compressor of this machine does not give the same bytes as on other machines",
            cause="isal was built with another ISA-L, or the processor is not x86-64 with SSE4.2",
            next_step="pip install --force-reinstall --only-binary :all: isal, on x86-64 of 2008 or later",
            detail=f"sha256 of the probe {digest.hexdigest()}, expected {_ANSWER}",
        )


def _probe() -> Iterator[bytes]:
    """2.5 MiB with repetition near and far, text and noise, the same everywhere."""
    noise = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(2048))
    for number in range(40):
        begin = number * 1543 % 32768
        yield b"".join(b"%d %x\n" % (line, line * number) for line in range(2000))
        yield noise[begin : begin + 30000] + bytes(number * 37)


def _even(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, CHUNK at a time: what the compressor gives depends on it."""
    pending: list[bytes] = []
    count = 0
    for piece in pieces:
        if not count and len(piece) == CHUNK:
            yield piece
            continue
        pending.append(piece)
        count += len(piece)
        if count >= CHUNK:
            joined = b"".join(pending)
            full = count - count % CHUNK
            for begin in range(0, full, CHUNK):
                yield joined[begin : begin + CHUNK]
            pending = [joined[full:]]
            count -= full
    if count:
        yield b"".join(pending)


def _flags(name: bytes) -> int:
    return 0 if name.isascii() else _UTF8_NAME


def _dos_time(epoch: int) -> tuple[int, int]:
    """Time and date as a zip holds them."""
    utc = datetime.fromtimestamp(min(max(epoch, EARLIEST), LATEST), UTC)
    return utc.hour << 11 | utc.minute << 5 | utc.second // 2, (
        utc.year - 1980
    ) << 9 | utc.month << 5 | utc.day


def _changed(name: str, size: int, count: int) -> InternalError:
    return InternalError(
        f"{name} should have {size:,} bytes and has {'more' if count > size else f'{count:,}'}",
        cause="the file was changed while it was being read",
        next_step="run again once nothing writes to it",
    )
