"""Compressed files and tars of strangers, read forward and never past their bound; nothing else opens one."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, cast

import zstandard
from isal import igzip, isal_zlib

from rocbase.files.bounds import Bound, OverBoundError

CHUNK = 1024 * 1024

LARGEST_WINDOW = 1 << 27
"""Bytes of memory that a zstd or xz stream may ask for."""

BROKEN: tuple[type[Exception], ...] = (
    *(tarfile.TarError, lzma.LZMAError, zstandard.ZstdError, zlib.error),
    cast("type[Exception]", isal_zlib.error),
    *(EOFError, gzip.BadGzipFile, OverBoundError, RecursionError),
)
"""What reading one raises where it is damaged, or larger than its bound; bz2 raises OSError."""

_LONG = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_PAX = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_RECORD, _DIGITS = re.compile(rb"(\d{1,9}) "), re.compile(rb"\d{256}")
_RETAINED_HEADERS = 16
"""Times the bound of a header that all headers may take that are held until the end."""


Unpacker = Callable[[IO[bytes]], IO[bytes]]


class Meter:
    """What may still be read of an input of so many `packed` bytes; several streams can share one."""

    def __init__(self, bound: Bound, packed: int) -> None:
        self.header = bound.header
        self._left = {
            "bytes": bound.size_of(packed),
            "bytes in files": bound.size_of(packed),  # a sparse one stands for more than comes
            "files": bound.members,
            "bytes of headers": _RETAINED_HEADERS * bound.header,
        }

    def spend(self, count: int, unit: str = "bytes", subject: str = "") -> None:
        """Raise OverBoundError where less is left; it names the member `subject`."""
        self._left[unit] -= count
        if self._left[unit] < 0:
            raise OverBoundError(f"it unpacks to more {unit} than any real one", subject)


class Unpacked(io.RawIOBase):
    """What a file holds, by its first bytes: packed by gzip, zstd, xz or bzip2, or as it lies there."""

    def __init__(self, packed: IO[bytes], meter: Meter, unpack: Unpacker | None = None) -> None:
        super().__init__()
        self._file, self._meter = (unpack or _unpacker(packed))(packed), meter

    def read(self, size: int = -1, /) -> bytes:
        if size < 0:
            return b"".join(self.pieces())
        data = self._file.read(size)
        self._meter.spend(len(data))
        return data

    def pieces(self) -> Iterator[bytes]:
        """Yield the rest of it."""
        while piece := self.read(CHUNK):
            yield piece

    def readable(self) -> bool:
        return True


class _Unxz(io.RawIOBase):
    """xz data, unpacked as they are read, within bounded memory."""

    def __init__(self, packed: IO[bytes]) -> None:
        super().__init__()
        self._packed = packed
        self._unpack = lzma.LZMADecompressor(memlimit=2 * LARGEST_WINDOW)

    def read(self, size: int = -1, /) -> bytes:
        limit = CHUNK if size < 0 else size
        while True:
            if self._unpack.eof:
                piece = self._unpack.unused_data or self._packed.read(CHUNK)
                if not piece.strip(b"\0"):
                    return b""
                self._unpack = lzma.LZMADecompressor(memlimit=2 * LARGEST_WINDOW)
            else:
                piece = self._packed.read(CHUNK) if self._unpack.needs_input else b""
                if self._unpack.needs_input and not piece:
                    raise EOFError("the xz data end early")
            if data := self._unpack.decompress(piece, limit):
                return data

    def readable(self) -> bool:
        return True


def gunzip(packed: IO[bytes]) -> IO[bytes]:
    """Return what reads gzip data."""
    opened: Callable[..., IO[bytes]] = igzip.open
    return opened(packed, "rb")


def unzstd(packed: IO[bytes]) -> IO[bytes]:
    """Return what reads all frames of zstd data: what is left out could be hidden in them."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
    return cast("IO[bytes]", unpacker.stream_reader(packed, read_size=CHUNK, read_across_frames=True))


def unxz(packed: IO[bytes]) -> IO[bytes]:
    """Return what reads xz data."""
    return cast("IO[bytes]", _Unxz(packed))


def unbzip2(packed: IO[bytes]) -> IO[bytes]:
    """Return what reads bzip2 data."""
    return cast("IO[bytes]", bz2.open(packed, "rb"))


_UNPACKERS: tuple[tuple[bytes, Unpacker], ...] = (
    (b"\x1f\x8b", gunzip),
    (b"\x28\xb5\x2f\xfd", unzstd),
    (b"\xfd7zXZ\x00", unxz),
    (b"BZh", unbzip2),
)


def _unpacker(packed: IO[bytes]) -> Unpacker:
    head = packed.read(6)
    packed.seek(-len(head), io.SEEK_CUR)
    return next((unpack for magic, unpack in _UNPACKERS if head.startswith(magic)), lambda file: file)


class Tar(tarfile.TarFile):
    """A tar that holds no member and no header larger than any honest one; made by `open_tar`."""

    meter: Meter

    def entries(self) -> Iterator[tarfile.TarInfo]:
        """Yield its members, each once."""
        for member in self:
            # tarfile remembers every member: two million take 1.6 GB
            self.members.clear()  # type: ignore[attr-defined] # typeshed lacks it
            self.meter.spend(1, "files", member.name)
            self.meter.spend(max(member.size, 0), "bytes in files", member.name)
            yield member


class _Member(tarfile.TarInfo):
    """A header of which tarfile holds no more in memory than of any honest one."""

    def _proc_member(self, tar: Tar) -> tarfile.TarInfo | None:
        # tarfile's own place for subclasses, called before a header's content is read; `frombuf` is called
        # by Python up to 3.12 alone
        if self.type in (*_LONG, *_PAX) and self.size > tar.meter.header:
            raise tarfile.ReadError(f"a header of {self.size} bytes")
        if self.type == tarfile.XGLTYPE:  # copied into every member behind it
            tar.meter.spend(_RETAINED_HEADERS**2 * self.size, "bytes of headers")
        member: tarfile.TarInfo | None = super()._proc_member(tar)  # type: ignore[misc] # typeshed lacks it
        return member

    def _proc_pax(self, tar: Tar) -> tarfile.TarInfo:
        stream = tar.fileobj
        assert stream is not None
        header = stream.read(self._block(self.size))  # type: ignore[attr-defined]
        _check_pax(header[: self.size])
        tar.fileobj = cast("Any", _Replayed(header, stream))
        try:
            member: tarfile.TarInfo = super()._proc_pax(tar)  # type: ignore[misc]
        finally:
            tar.fileobj = stream
        return member

    def _proc_sparse(self, tar: Tar) -> tarfile.TarInfo:
        # its map goes on in blocks without an end
        if self._sparse_structs[1]:  # type: ignore[attr-defined]
            raise tarfile.ReadError("a sparse file of many parts")
        member: tarfile.TarInfo = super()._proc_sparse(tar)  # type: ignore[misc]
        return member

    def _proc_gnusparse_10(self, *_: object) -> None:
        raise tarfile.ReadError("a sparse file whose map has no bound")


class _Replayed:
    """A stream whose next bytes were read already, all in one reading."""

    def __init__(self, data: bytes, stream: Any) -> None:
        self._data, self._rest = data, stream

    def read(self, size: int) -> bytes:
        data, self._data = self._data, b""
        return data or cast("bytes", self._rest.read(size))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rest, name)


def _check_pax(header: bytes) -> None:
    """Raise ReadError unless each record is as long as it says: Python 3.11.7 holds a header once for each
    that is not, and takes a square of the length of a row of digits."""
    offset = 0
    while offset < len(header) and header[offset]:
        match = _RECORD.match(header, offset)
        end = offset + int(match[1]) if match else 0
        if (
            not offset < end <= len(header)
            or header[end - 1] != ord("\n")
            or header.find(b"=", offset, end) < 0
        ):
            raise tarfile.ReadError("an extended header is not made of records")
        offset = end
    if _DIGITS.search(header):
        raise tarfile.ReadError("an extended header of digits")


def open_tar(file: IO[bytes], meter: Meter, mode: str = "r|") -> Tar:
    """Open a tar, by default one that is read forward. Raises what is in BROKEN where it is none."""
    bounded = type("BoundTar", (Tar,), {"meter": meter})
    return cast("Tar", bounded.open(fileobj=file, mode=mode, bufsize=CHUNK, tarinfo=_Member))  # type: ignore[attr-defined]
