"""The files in a wheel, archive, package, image layout, folder, or one file alone: one after another.

Nothing is unpacked to disk but single members of archives that can only be read forward (.tar.gz and the
like, .deb), each in its turn into a temporary file without a name.
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, cast

from isal import igzip

from rocwright.errors import CheckError, InputError, RocwrightError
from rocwright.wheels import zips
from rocwright.wheels.source import CHUNK, Budget, FileSource, Source

HEAD = 64
"""Bytes of a member that are there without opening it."""

_GZIP_MAGIC = b"\x1f\x8b"
_TAR_SUFFIXES = (".tar.gz", ".tgz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One file of a container.

    `path` is seen from the container; `mode` holds the permission bits, 0 where the container says nothing;
    `head` is how it begins. A member of a wheel or folder can be opened at any time, one of another archive
    until the next is asked for. `packed` says how it lies in a wheel, None elsewhere.
    """

    path: str
    size: int
    mode: int
    head: bytes
    packed: zips.ZipMember | None = None
    opener: Callable[[], Source] = field(repr=False, compare=False)

    def open(self) -> Source:
        """Its content, at random access. Raises CheckError where it is damaged."""
        return self.opener()


def members(path: Path, budget: Budget | None = None) -> Iterator[Member]:
    """The regular files in `path`, or itself where it is no container. Links are left out.

    Raises InputError where it cannot be read, CheckError where it is damaged or made to deceive.
    """
    try:
        if path.is_dir():
            yield from _in_folder(path, budget)
            return
        if not path.is_file():
            raise InputError(
                f"{path} is no file or folder",
                cause="it is not there, or is a device or socket",
                next_step="check the path",
                subject=str(path),
            )
        file = FileSource(path, budget)
        head = file.read_at(0, min(HEAD, file.size))
        if head.startswith((zips.MAGIC, zips.EMPTY_MAGIC)) or path.suffix == ".whl":
            yield from _in_zip(file)
        elif head.startswith(_GZIP_MAGIC) or path.name.endswith(_TAR_SUFFIXES):
            yield from _in_tar(file)
        else:
            mode = stat.S_IMODE(path.stat().st_mode)
            yield Member(path=path.name, size=file.size, mode=mode, head=head, opener=lambda: file)
    except RocwrightError:
        raise
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror or error}",
            cause="it is not there, is no file or folder, or this user may not read it",
            next_step="check the path and its rights",
            subject=str(path),
        ) from error


def _in_folder(folder: Path, budget: Budget | None) -> Iterator[Member]:
    """In a fixed order. What a link names is listed where it lies, or lies outside."""
    for parent, folders, names in os.walk(folder, onerror=_raise):
        folders.sort()
        for name in sorted(names):
            file = Path(parent, name)
            status = file.lstat()
            if not stat.S_ISREG(status.st_mode):
                continue
            path = str(file.relative_to(folder))

            def opener(file: Path = file, path: str = path) -> Source:
                return FileSource(file, budget, path)

            with file.open("rb", buffering=0) as opened:
                head = opened.read(HEAD)
            yield Member(
                path=path,
                size=status.st_size,
                mode=stat.S_IMODE(status.st_mode),
                head=head,
                opener=opener,
            )


def _raise(error: OSError) -> None:
    raise error


def _in_zip(archive: Source) -> Iterator[Member]:
    for one in zips.zip_members(archive):

        def opener(one: zips.ZipMember = one) -> Source:
            return one.open(archive)

        yield Member(
            path=one.path,
            size=one.size,
            mode=one.mode,
            head=one.head(archive, HEAD),
            packed=one,
            opener=opener,
        )


def _in_tar(archive: Source) -> Iterator[Member]:
    """In one pass: going back means starting over, so a member is put aside to be read."""
    with _archive_errors(archive.subject), _gunzipping(archive) as unpacked, TemporaryFile() as aside:
        metered = cast("IO[bytes]", _Metered(unpacked, archive.budget))
        with tarfile.open(fileobj=metered, mode="r|", bufsize=CHUNK) as tar:
            for info in tar:
                member = tar.extractfile(info) if info.isfile() else None
                if member is None:
                    continue
                content = _Aside(member, info.size, archive.budget, info.name, aside)
                yield Member(
                    path=info.name.removeprefix("./"),
                    size=info.size,
                    mode=stat.S_IMODE(info.mode),
                    head=content.read_at(0, min(HEAD, info.size)),
                    opener=partial(_same, content),
                )


def _gunzipping(archive: Source) -> IO[bytes]:
    opened: Callable[..., IO[bytes]] = igzip.open
    return opened(archive, "rb")


def _same(source: Source) -> Source:
    return source


class _Aside(Source):
    """A member that can only be read forward: its head is held, the rest put aside when it is asked for."""

    def __init__(self, member: IO[bytes], size: int, budget: Budget, subject: str, aside: IO[bytes]) -> None:
        super().__init__(size, budget, subject)
        self._member = member
        self._head = member.read(HEAD)
        self._file = aside
        self._is_aside = False

    def _get(self, offset: int, count: int) -> bytes:
        if offset + count <= len(self._head):
            return self._head[offset : offset + count]
        if not self._is_aside:
            self._file.seek(0)
            self._file.write(self._head)
            while data := self._member.read(CHUNK):
                self._file.write(data)
            self._file.flush()
            self._is_aside = True
        return os.pread(self._file.fileno(), count, offset)


class _Metered(io.RawIOBase):
    """A stream whose every read is paid from a budget."""

    def __init__(self, file: IO[bytes], budget: Budget) -> None:
        super().__init__()
        self._file = file
        self._budget = budget

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self._budget.spend(len(data))
        return data

    def readable(self) -> bool:
        return True


@contextmanager
def _archive_errors(subject: str) -> Iterator[None]:
    try:
        yield
    except RocwrightError:
        raise
    except Exception as error:  # damaged archives raise errors of many kinds, and so do their unpackers
        raise CheckError(
            f"cannot read {subject} as an archive: {error or type(error).__name__}",
            cause="the file is cut short, damaged, or no archive of files",
            next_step="build it or get it again",
            subject=subject,
        ) from error
