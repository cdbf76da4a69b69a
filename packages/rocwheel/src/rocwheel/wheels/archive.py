"""A wheel read to be written again or compared: its files, inflated when they are asked for."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from isal import isal_zlib

from rocbase.errors import CheckError, InputError
from rocwheel.wheels.metadata import dist_info_folder
from rocwheel.wheels.source import BLOCK, ByteSource, FileSource
from rocwheel.wheels.write import WheelFile, check_paths
from rocwheel.wheels.zipping import CHUNK
from rocwheel.wheels.zips import DEFLATED, ZipMember, zip_members

_INFLATE_ERRORS = cast("tuple[type[Exception]]", (isal_zlib.error,))


@dataclass(frozen=True, slots=True)
class Stored:
    """A file that lies in a zip as it is."""

    archive: ByteSource
    member: ZipMember

    @property
    def size(self) -> int:
        return self.member.size

    @property
    def crc(self) -> int:
        return self.member.crc

    def unpacked(self) -> Iterator[bytes]:
        """What it holds; raises CheckError where that has another size or checksum than the zip says."""
        crc = count = 0
        for piece in self._contents():
            crc = isal_zlib.crc32(piece, crc)
            count += len(piece)
            if count > self.size:
                break
            yield piece
        if count != self.size:
            raise self._damaged(f"it does not have the {self.size:,} bytes that the zip declares")
        if crc != self.crc:
            raise self._damaged("its checksum does not match")

    def _contents(self) -> Iterator[bytes]:
        return self._pieces()

    def _pieces(self) -> Iterator[bytes]:
        packed = self.member.packed(self.archive)
        for offset in range(0, packed.size, BLOCK):
            yield packed.read_at(offset, min(BLOCK, packed.size - offset))

    def _damaged(self, reason: str) -> CheckError:
        return CheckError(
            f"{self.member.path}: {reason}",
            cause="the wheel is truncated, damaged, or not what its name says",
            next_step="download it again, or rebuild it",
            subject=self.archive.subject,
        )


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
                    self.archive.budget.spend(len(data))
                    yield data
                    data = inflate.decompress(inflate.unconsumed_tail, CHUNK)
                if inflate.eof:
                    break
        except _INFLATE_ERRORS as error:
            raise self._damaged(str(error)) from error
        if not inflate.eof:
            raise self._damaged("it is truncated")


@contextmanager
def open_wheel(path: Path) -> Iterator[list[WheelFile]]:
    """The files of a wheel, in the order of its directory, to be read while the context lasts.

    Raises InputError for what cannot be read or has names that no wheel may have, CheckError where it is
    damaged or made to deceive.
    """
    try:
        archive = FileSource(path, subject=str(path))
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror or error}",
            cause="it does not exist, is not a file, or you have no permission to read it",
            next_step="check the path and its permissions",
        ) from error
    with archive:
        members = zip_members(archive)
        check_paths(member.path for member in members)
        yield [_file(archive, member) for member in members]


def read_metadata(path: Path) -> bytes:
    """Return the METADATA of a wheel. Raises InputError if it is none, CheckError for a damaged one."""
    with open_wheel(path) as files:
        place = f"{dist_info_folder(file.path for file in files)}/METADATA"
        for file in files:
            if file.path == place:
                return file.read()
    raise CheckError(
        f"{path.name} has no {place}",
        cause="it is damaged, or was not made by a build tool",
        next_step="get a fresh copy of the wheel",
        subject=str(path),
    )


@contextmanager
def opened(path: Path) -> Iterator[list[WheelFile]]:
    """The files of a wheel or of an unpacked one, or one file alone; raises as `open_wheel`."""
    if path.is_dir():
        yield sorted(_in_folder(path), key=lambda file: file.path)
    elif path.suffix == ".whl":
        with open_wheel(path) as files:
            yield files
    else:
        yield [WheelFile(path=path.name, content=path)]


def _file(archive: ByteSource, member: ZipMember) -> WheelFile:
    if member.method == DEFLATED:
        return WheelFile(path=member.path, content=Deflated(archive, member), mode=member.mode or 0o644)
    member.open(archive)  # raises for what is neither deflated nor stored
    return WheelFile(path=member.path, content=Stored(archive, member), mode=member.mode or 0o644)


def _in_folder(folder: Path) -> Iterator[WheelFile]:
    for path in folder.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            yield WheelFile(path=path.relative_to(folder).as_posix(), content=path, mode=stat.S_IMODE(mode))
        elif not stat.S_ISDIR(mode):
            raise InputError(
                f"{path} is a link or device; a wheel may hold only regular files",
                cause="the folder was not made by unpacking a wheel",
                next_step="replace it with the file itself",
            )
