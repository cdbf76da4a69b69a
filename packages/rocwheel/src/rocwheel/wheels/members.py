"""The files in a wheel, archive, package, image layout, folder, or one file alone: one after another.

Nothing is unpacked to disk but single members of archives that can only be read forward (.tar.gz and the
like, .deb), each in its turn into a temporary file without a name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rocbase.errors import ExplainedError, InputError
from rocbase.files.bounds import check_text
from rocwheel.wheels.formats import AR_MAGIC, EMPTY_ZIP_MAGIC, IMAGE_MARK, TAR_HEAD, ZIP_MAGIC, is_tar
from rocwheel.wheels.source import Budget, ByteSource, FileSource, damaged

if TYPE_CHECKING:
    from tarfile import TarInfo

    from rocwheel.wheels.zips import ZipMember

HEAD = 96
"""Bytes of a member that are there without opening it."""


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
    packed: ZipMember | None = None
    opener: Callable[[], ByteSource] = field(repr=False, compare=False)

    def open(self) -> ByteSource:
        """Its content, at random access. Raises CheckError where it is damaged."""
        return self.opener()

    def read(self, limit: int = 0) -> bytes:
        """Return a text of the wheel. Raises CheckError if it is larger than `check_text` allows."""
        check_text(self.path, self.size, limit)
        return self.open().read_at(0, self.size)


def members(path: Path, budget: Budget | None = None) -> Iterator[Member]:
    """The regular files in `path`, or itself where it is no container. Links are left out.

    Raises InputError where it cannot be read, CheckError where it is damaged or made to deceive.
    """
    try:
        if path.is_dir():
            is_image = (path / IMAGE_MARK).is_file()
            yield from _in_image(path, budget) if is_image else _in_folder(path, budget)
            return
        if not path.is_file():
            raise InputError(
                f"{path} is not a file or folder",
                cause="it does not exist, or is a device or socket",
                next_step="check the path",
                subject=str(path),
            )
        file = FileSource(path, budget)
        reader = _reader_of(path.name, file.read_at(0, min(TAR_HEAD, file.size)))
        if reader is not None:
            yield from reader(file)
        else:
            yield _member(path.name, stat.S_IMODE(path.stat().st_mode), file)
    except ExplainedError:
        raise
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror or error}",
            cause="it does not exist, is not a file or folder, or you have no permission to read it",
            next_step="check the path and its permissions",
            subject=str(path),
        ) from error


def plain_head(path: Path) -> bytes | None:
    """Return the first bytes of a file that is no container; None for a container or a folder."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head = file.read(TAR_HEAD)
    return head if _reader_of(path.name, head) is None else None


def _reader_of(name: str, head: bytes) -> Callable[[FileSource], Iterator[Member]] | None:
    """Return what reads the members of a container, by its name and its first bytes."""
    if head.startswith((ZIP_MAGIC, EMPTY_ZIP_MAGIC)) or name.endswith(".whl"):
        return _in_zip
    if head.startswith(AR_MAGIC):
        return _in_ar
    return _in_tar if is_tar(head, name) else None


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

            def opener(file: Path = file, path: str = path) -> ByteSource:
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


def _in_image(folder: Path, budget: Budget | None) -> Iterator[Member]:
    from rocwheel.wheels.images import image_files

    # one budget for all of it: a layer may be named by many images
    sizes = (file.lstat().st_size for file in folder.rglob("*"))
    budget = budget or Budget.for_file(sum(sizes), folder.name)

    def opened(path: Path, name: str) -> FileSource:
        return FileSource(path, budget, name)

    for path, info, content in image_files(folder, opened):
        yield _of_tar(path, info, content)


def _raise(error: OSError) -> None:
    raise error


def _in_zip(archive: ByteSource) -> Iterator[Member]:
    from rocwheel.wheels.zips import zip_members

    for member in zip_members(archive):

        def opener(member: ZipMember = member) -> ByteSource:
            return member.open(archive)

        yield Member(
            path=member.path,
            size=member.size,
            mode=member.mode,
            head=member.head(archive, HEAD),
            packed=member,
            opener=opener,
        )


def _in_tar(archive: ByteSource) -> Iterator[Member]:
    from rocwheel.wheels.archives import tar_entries

    for info, content in tar_entries(archive):
        if content is not None:
            yield _of_tar(info.name.removeprefix("./"), info, content)


def _of_tar(path: str, info: TarInfo, content: ByteSource) -> Member:
    mode = stat.S_IMODE(info.mode)
    return _member(path, mode, content)


def _in_ar(archive: ByteSource) -> Iterator[Member]:
    """The files of a Debian package, or the objects of a static library."""
    from rocwheel.wheels.archives import ar_members

    for number, (name, content) in enumerate(ar_members(archive)):
        if number == 0 and name == "debian-binary":
            yield from _in_deb(archive)
            return
        yield _member(name, 0, content)


def _in_deb(archive: ByteSource) -> Iterator[Member]:
    from rocwheel.wheels.archives import ar_members

    for name, content in ar_members(archive):
        if name.startswith("data.tar"):
            yield from _in_tar(content)
            return
    raise damaged(archive.subject, "it is a Debian package without data.tar")


def _member(path: str, mode: int, content: ByteSource) -> Member:
    head = content.read_at(0, min(HEAD, content.size))
    return Member(path=path, size=content.size, mode=mode, head=head, opener=lambda: content)
