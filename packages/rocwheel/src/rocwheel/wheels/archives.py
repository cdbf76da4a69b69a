"""Archives that are read forward: tars, packed in any way that packages use, and ar (.deb, .a)."""

from __future__ import annotations

import bz2
import io
import lzma
import os
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, Any, cast

import zstandard
from isal import igzip

from rocwheel.errors import CheckError, RocwheelError
from rocwheel.wheels.formats import AR_MAGIC, packing
from rocwheel.wheels.source import CHUNK, Budget, Source

LARGEST_WINDOW = 1 << 27
"""Bytes of memory that a zstd or xz stream may ask for."""

MOST_MEMBERS = 5_000_000
LONGEST_TABLE = 64 * 1024 * 1024

_MOST_BETWEEN = 4 * 1024 * 1024 + 2 * CHUNK
"""Bytes of a tar that may lie between two files: headers, long names, padding, and what is read ahead."""

_AR_HEADER = 60

Unpacker = Callable[[IO[bytes]], IO[bytes]]


def _gunzip(packed: IO[bytes]) -> IO[bytes]:
    opened: Callable[..., IO[bytes]] = igzip.open
    return opened(packed, "rb")


def _unzstd(packed: IO[bytes]) -> IO[bytes]:
    unpacker = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
    return cast("IO[bytes]", unpacker.stream_reader(packed, read_size=CHUNK, read_across_frames=True))


def _unxz(packed: IO[bytes]) -> IO[bytes]:
    return cast("IO[bytes]", _Unxz(packed))


def _unbzip2(packed: IO[bytes]) -> IO[bytes]:
    return cast("IO[bytes]", bz2.open(packed, "rb"))


_UNPACKERS: dict[str, Unpacker] = {"gzip": _gunzip, "zstd": _unzstd, "xz": _unxz, "bzip2": _unbzip2}


def tar_entries(archive: Source) -> Iterator[tuple[tarfile.TarInfo, Source | None]]:
    """What a tar holds, in its order: each with its content where it is a file, to be read before the next.

    In one pass: going back means starting over, so a file that is read behind its beginning is put aside on
    disk, in a temporary file without a name. Raises CheckError where the tar is damaged.
    """
    unpack = _UNPACKERS.get(packing(archive.read_at(0, min(8, archive.size))))
    packed = cast("IO[bytes]", archive.window(0, archive.size))
    with archive_errors(archive.subject), TemporaryFile() as aside:
        metered = _Metered(unpack(packed) if unpack else packed, archive)
        with tarfile.open(fileobj=cast("IO[bytes]", metered), mode="r|", bufsize=CHUNK) as tar:
            for _ in range(MOST_MEMBERS):
                if (info := tar.next()) is None:
                    return
                if info.issparse():
                    raise _wrong(
                        archive.subject, f"{info.name} is a sparse file, which packages do not contain"
                    )
                cast("Any", tar).members = []  # else it keeps them all
                metered.left = info.size + _MOST_BETWEEN
                member = tar.extractfile(info) if info.isreg() else None
                yield info, _Aside(member, info, archive.budget, aside) if member else None
        raise _wrong(archive.subject, f"it has more than {MOST_MEMBERS:,} members")


def ar_members(archive: Source) -> Iterator[tuple[str, Source]]:
    """The members of an ar archive (GNU's, BSD's) with their content; CheckError where it is damaged."""
    names = b""
    position = len(AR_MAGIC)
    for _ in range(MOST_MEMBERS):
        if position >= archive.size:
            return
        header = archive.read_at(position, min(_AR_HEADER, archive.size - position))
        raw, size = header[:16].rstrip(b" "), header[48:58].strip()
        if header[58:] != b"`\n" or not size.isdigit():
            raise _wrong(archive.subject, "one of its members has no header")
        length = int(size)
        content = archive.window(position + _AR_HEADER, length)
        position += _AR_HEADER + length + length % 2
        if raw in (b"/", b"/SYM64/"):
            continue
        if raw == b"//":
            if length > LONGEST_TABLE:
                raise _wrong(archive.subject, f"its names claim {length:,} bytes")
            names = content.read_at(0, length)
            continue
        if raw.startswith(b"#1/") and raw[3:].isdigit():
            count = min(int(raw[3:]), 4096)
            raw = content.read_at(0, count).rstrip(b"\0")
            content = content.window(count, length - count)
        elif raw.startswith(b"/") and raw[1:].isdigit():
            raw = names[int(raw[1:]) :].partition(b"\n")[0]
        yield raw.removesuffix(b"/").decode("utf-8", errors="replace"), content
    raise _wrong(archive.subject, f"it has more than {MOST_MEMBERS:,} members")


@contextmanager
def archive_errors(subject: str) -> Iterator[None]:
    """Turns what unpackers raise into CheckError."""
    try:
        yield
    except RocwheelError:
        raise
    except Exception as error:  # damaged archives raise errors of many kinds, and so do their unpackers
        raise _wrong(subject, str(error) or type(error).__name__) from error


class _Aside(Source):
    """A member that can only be read forward: its head is held, the whole put aside when it is wanted."""

    _HELD = 4096

    def __init__(self, member: IO[bytes], info: tarfile.TarInfo, budget: Budget, aside: IO[bytes]) -> None:
        super().__init__(info.size, budget, info.name)
        self._member = member
        self._head = member.read(self._HELD)
        self._file = aside
        self._is_aside = False

    def _get(self, offset: int, count: int) -> bytes:
        if offset + count <= len(self._head):
            return self._head[offset : offset + count]
        if not self._is_aside:
            self._is_aside = True
            self._file.seek(0)
            self._file.truncate()
            self._file.write(self._head)
            with archive_errors(self.subject):
                while data := self._member.read(CHUNK):
                    self.budget.spend(len(data))
                    self._file.write(data)
            self._file.flush()
        return os.pread(self._file.fileno(), count, offset)


class _Unxz(io.RawIOBase):
    """xz data, unpacked as they are read, within bounded memory."""

    def __init__(self, packed: IO[bytes]) -> None:
        super().__init__()
        self._packed = packed
        self._unpack = lzma.LZMADecompressor(memlimit=2 * LARGEST_WINDOW)

    def read(self, size: int = -1, /) -> bytes:
        most = CHUNK if size < 0 else size
        while True:
            if self._unpack.eof:
                held = self._unpack.unused_data or self._packed.read(CHUNK)
                if not held.strip(b"\0"):
                    return b""
                self._unpack = lzma.LZMADecompressor(memlimit=2 * LARGEST_WINDOW)
            else:
                held = self._packed.read(CHUNK) if self._unpack.needs_input else b""
                if self._unpack.needs_input and not held:
                    raise EOFError("the xz data end early")
            if data := self._unpack.decompress(held, most):
                return data

    def readable(self) -> bool:
        return True


class _Metered(io.RawIOBase):
    """A stream whose every read is paid from a budget, and of which only `left` bytes may be read."""

    def __init__(self, file: IO[bytes], archive: Source) -> None:
        super().__init__()
        self._file = file
        self._archive = archive
        self.left = _MOST_BETWEEN

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self._archive.budget.spend(len(data))
        self.left -= len(data)
        if self.left < 0:
            raise _wrong(self._archive.subject, "one of its headers is not terminated")
        return data

    def readable(self) -> bool:
        return True


def _wrong(subject: str, why: str) -> CheckError:
    return CheckError(
        f"cannot read {subject} as an archive: {why}",
        cause="the file is truncated, damaged, or not an archive",
        next_step="build the file again, or get a fresh copy",
        subject=subject,
    )
