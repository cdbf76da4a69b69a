"""A wheel read to be written again: its files as `File`s that are inflated when they are asked for.

Source of the format: PKWARE's APPNOTE.TXT 6.3.3.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from isal import isal_zlib

from rocwright.errors import CheckError, InputError
from rocwright.wheels.source import BLOCK, Budget
from rocwright.wheels.write import File, check_path, check_paths
from rocwright.wheels.zipping import CHUNK, DEFLATED

_LOCAL = struct.Struct("<4s5H3L2H")
_STORED = 0
_ENCRYPTED = 1
_KINDS = {0, stat.S_IFREG}
"""Kinds of file that a member may be, as Unix names them; 0 is what other systems leave there."""
MOST_MEMBERS = 1_000_000
_INFLATE_ERRORS = cast("tuple[type[Exception]]", (isal_zlib.error,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A file that lies in a zip as it is."""

    file: BinaryIO
    name: str
    begin: int
    length: int
    size: int
    crc: int
    budget: Budget

    def unpacked(self) -> Iterator[bytes]:
        """What it holds; raises CheckError where that has another size or checksum than the zip says."""
        crc = count = 0
        for piece in self._contents():
            self.budget.spend(len(piece))
            crc = isal_zlib.crc32(piece, crc)
            count += len(piece)
            if count > self.size:
                break
            yield piece
        if count != self.size:
            raise _damaged(self.name, f"it does not have the {self.size:,} bytes that the zip says")
        if crc != self.crc:
            raise _damaged(self.name, "its checksum differs")

    def _contents(self) -> Iterator[bytes]:
        yield from self._pieces()

    def _pieces(self) -> Iterator[bytes]:
        position, end = self.begin, self.begin + self.length
        while position < end:
            self.file.seek(position)
            piece = self.file.read(min(BLOCK, end - position))
            if not piece:
                raise _damaged(self.name, "the zip ends within it")
            position += len(piece)
            yield piece


class Deflated(Stored):
    """A file that lies in a zip deflated."""

    __slots__ = ()

    def packed(self) -> Iterator[bytes]:
        """The deflated bytes."""
        return self._pieces()

    def _contents(self) -> Iterator[bytes]:
        inflate = isal_zlib.decompressobj(-15)
        try:
            for piece in self._pieces():
                data = inflate.decompress(piece, CHUNK)
                while data:
                    yield data
                    data = inflate.decompress(inflate.unconsumed_tail, CHUNK)
                if inflate.eof:
                    break
        except _INFLATE_ERRORS as error:
            raise _damaged(self.name, str(error)) from error
        if not inflate.eof:
            raise _damaged(self.name, "it ends before its end")


@contextmanager
def open_wheel(path: Path) -> Iterator[list[File]]:
    """The files of a wheel, in the order in which they lie there, to be read while the context lasts.

    Raises InputError for what is no zip or has names or kinds of files that no wheel may have, CheckError
    where it is damaged.
    """
    try:
        with path.open("rb") as file:
            yield _files(file, str(path))
    except OSError as error:
        if error.filename not in (path, str(path)):
            raise
        raise InputError(
            f"cannot read {path}: {error.strerror or error}",
            next_step="check the path and its rights",
        ) from error


def _files(file: BinaryIO, subject: str) -> list[File]:
    end = file.seek(0, io.SEEK_END)
    try:
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            directory = archive.start_dir
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        ValueError,
        struct.error,
        OverflowError,
        EOFError,
    ) as error:
        raise InputError(
            f"{subject} is no zip that can be read",
            cause=str(error),
            next_step="give a wheel; if this is one, get it again",
        ) from error
    if len(infos) > MOST_MEMBERS:
        raise _damaged(subject, f"it claims {len(infos):,} files")
    budget = Budget.for_file(end, subject)
    check_paths(info.orig_filename for info in infos if not info.is_dir())
    spans = []
    files = []
    for info in infos:
        member = _member(file, info, budget)
        spans.append((info.header_offset, member.begin + member.length, member.name))
        mode = info.external_attr >> 16
        if stat.S_IFMT(mode) not in _KINDS and not info.is_dir():
            raise InputError(
                f"{member.name!r} is a link or device; a wheel holds files only",
                cause="the wheel is damaged, or made to write where it should not",
                next_step="get it again from where it was built",
            )
        if info.is_dir():
            check_path(info.orig_filename.removesuffix("/"))
            if member.size:
                raise _damaged(member.name, "a folder that holds bytes")
            continue
        files.append(File(path=member.name, content=member, mode=stat.S_IMODE(mode) or 0o644))
    _check_apart(sorted(spans), directory)
    return files


def _member(file: BinaryIO, info: zipfile.ZipInfo, budget: Budget) -> Stored:
    name = info.orig_filename
    if info.flag_bits & _ENCRYPTED or info.compress_type not in (_STORED, DEFLATED):
        raise InputError(
            f"{name} is encrypted, or packed by method {info.compress_type}",
            cause="the files of a wheel are deflated or stored",
            next_step="pack it again, as pip would take it",
        )
    file.seek(info.header_offset)
    head = file.read(_LOCAL.size)
    if len(head) < _LOCAL.size or not head.startswith(b"PK\3\4"):
        raise _damaged(name, "nothing begins where it should")
    *_, name_size, extra_size = _LOCAL.unpack(head)
    told = file.read(name_size).decode("utf-8" if info.flag_bits & 0x800 else "cp437", errors="replace")
    if told != name:
        raise _damaged(name, "it has another name where it lies")
    kind = Deflated if info.compress_type == DEFLATED else Stored
    return kind(
        file=file,
        name=name,
        begin=info.header_offset + _LOCAL.size + name_size + extra_size,
        length=info.compress_size,
        size=info.file_size,
        crc=info.CRC,
        budget=budget,
    )


def _check_apart(spans: list[tuple[int, int, str]], directory: int) -> None:
    last = 0
    for begin, end, name in spans:
        if begin < last or end > directory:
            raise _damaged(name, "it overlaps another file, or the directory")
        last = end


def _damaged(name: str, why: str) -> CheckError:
    return CheckError(
        f"{name}: {why}",
        cause="the wheel is cut short, damaged, or not what its name says",
        next_step="get it again from where it was built",
    )
