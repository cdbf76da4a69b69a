"""Archives that are read forward: tars, packed in any way that packages use, and ar (.deb, .a)."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, cast

from rocbase.errors import CheckError, ExplainedError
from rocbase.files.bounds import PACKAGES
from rocbase.files.unpacking import Meter, gunzip, open_tar, unbzip2, unxz, unzstd
from rocwheel.wheels.formats import AR_MAGIC, packing
from rocwheel.wheels.source import CHUNK, Budget, ByteSource

LONGEST_TABLE = 64 * 1024 * 1024

_AR_HEADER = 60

_UNPACKERS = {"gzip": gunzip, "zstd": unzstd, "xz": unxz, "bzip2": unbzip2}


def tar_entries(archive: ByteSource) -> Iterator[tuple[tarfile.TarInfo, ByteSource | None]]:
    """What a tar holds, in its order: each with its content where it is a file, to be read before the next.

    In one pass: going back means starting over, so a file that is read behind its beginning is put aside on
    disk, in a temporary file without a name. Raises CheckError where the tar is damaged.
    """
    unpack = _UNPACKERS.get(packing(archive.read_at(0, min(8, archive.size))))
    packed = cast("IO[bytes]", archive.window(0, archive.size))
    with archive_errors(archive.subject), TemporaryFile() as aside:
        metered = _Metered(unpack(packed) if unpack else packed, archive.budget)
        with open_tar(cast("IO[bytes]", metered), Meter(PACKAGES, 0)) as tar:
            for info in tar.entries():
                if info.issparse():
                    raise _wrong(
                        archive.subject, f"{info.name} is a sparse file, which packages do not contain"
                    )
                member = tar.extractfile(info) if info.isreg() else None
                yield info, _Aside(member, info, archive.budget, aside) if member else None


def ar_members(archive: ByteSource) -> Iterator[tuple[str, ByteSource]]:
    """The members of an ar archive (GNU's, BSD's) with their content; CheckError where it is damaged."""
    names = b""
    position = len(AR_MAGIC)
    for _ in range(PACKAGES.members):
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
    raise _wrong(archive.subject, f"it has more than {PACKAGES.members:,} members")


@contextmanager
def archive_errors(subject: str) -> Iterator[None]:
    """Turns what unpackers raise into CheckError."""
    try:
        yield
    except ExplainedError:
        raise
    except Exception as error:  # damaged archives raise errors of many kinds, and so do their unpackers
        raise _wrong(subject, str(error) or type(error).__name__) from error


class _Aside(ByteSource):
    """A member that can only be read forward: its head is held, the whole put aside when it is wanted."""

    _HEAD_SIZE = 4096

    def __init__(self, member: IO[bytes], info: tarfile.TarInfo, budget: Budget, aside: IO[bytes]) -> None:
        super().__init__(info.size, budget, info.name)
        self._member = member
        self._head = member.read(self._HEAD_SIZE)
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


class _Metered(io.RawIOBase):
    """A stream whose every read is paid from a budget."""

    def __init__(self, file: IO[bytes], budget: Budget) -> None:
        super().__init__()
        self._file, self._budget = file, budget

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self._budget.spend(len(data))
        return data

    def readable(self) -> bool:
        return True


def _wrong(subject: str, reason: str) -> CheckError:
    return CheckError(
        f"cannot read {subject} as an archive: {reason}",
        cause="the file is truncated, damaged, or not an archive",
        next_step="build the file again, or get a fresh copy",
        subject=subject,
    )
