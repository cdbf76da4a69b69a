"""Archives from strangers, unpacked without ever leaving the folder; trees packed the same everywhere."""

from __future__ import annotations

import errno
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, cast

from rocbase.errors import FetchError
from rocbase.files.atomic import CHUNK, is_git
from rocbase.files.bounds import SOURCES, OverBoundError
from rocbase.files.unpacking import BROKEN, Meter, Unpacked, open_tar
from rocbase.folders.listing import shown
from rocwright.sources.extraction import Extraction, Parts, UnsafeMemberError, checked_parts
from rocwright.store.packed import packing

# Names of members that are left out which are told one by one.
MOST_TOLD = 20

_BROKEN: tuple[type[Exception], ...] = (
    *(*BROKEN, zipfile.BadZipFile),
    # encrypted members, unknown methods, names that are no text, links to nothing
    *(RuntimeError, ValueError, KeyError, OverflowError),
    # what tarfile says of a gzip header that ends early
    TypeError,
)
# What the system answers to a file that is a folder too, an overlong name, a place before the start.
_SENSELESS = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EINVAL)


def unpack(
    archive: Path,
    target: Path,
    *,
    filename: str = "",
    subdir: str = "",
    wrapped: bool = True,
    git: bool = False,
) -> tuple[str, ...]:
    """Unpack a tar (gz, bz2, xz, zst) or zip archive into `target`.

    Where a tar is `wrapped`, the folder around it all, if there is one, is left out; only what lies under
    `subdir` is kept, where one is given. What git would take for its own, such as .git, at any depth, is left
    out but with `git`; gives the names of what was, some of them. Raises FetchError, before anything is
    written outside `target`, for absolute names, `..`, links that lead out, devices, and bombs.
    """
    name = filename or archive.name
    dropped = Dropped(keep=git)
    target.mkdir(parents=True, exist_ok=True)
    try:
        with Extraction(target) as extraction:
            if name.endswith((".zip", ".whl")):
                _unpack_zip(archive, extraction, name, subdir, dropped)
            else:
                _unpack_tar(archive, extraction, name, subdir, wrapped, dropped)
    except OverBoundError as error:
        raise _hostile(name, error.member, str(error)) from error
    except _BROKEN as error:
        raise _not_whole(name, error) from error
    except OSError as error:
        # without a number it is bz2's word for damaged data
        if error.errno not in (None, *_SENSELESS):
            raise
        raise _not_whole(name, error) from error
    if subdir and not any(target.iterdir()):
        raise FetchError(
            f"{name} has nothing under {subdir}",
            cause="the archive is laid out differently in this version",
            next_step="correct `subdir` of the source in the recipe",
            subject=name,
        )
    return tuple(sorted(dropped.names))


def left_out(filename: str, names: Sequence[str]) -> list[str]:
    """A line for what `unpack` left out of an archive, where it left out anything."""
    return (
        [f"left out of {filename}, because git could execute what they name: {', '.join(names)}"]
        if names
        else []
    )


class Dropped:
    """Names that git would take for its own, where they are not to be kept."""

    def __init__(self, *, keep: bool) -> None:
        self.keep = keep
        self.names: set[str] = set()

    def drops(self, parts: Parts) -> bool:
        """Whether a member is left out."""
        depth = next((number for number, part in enumerate(parts, 1) if is_git(part)), 0)
        if self.keep or not depth:
            return False
        if len(self.names) < MOST_TOLD:
            self.names.add(shown("/".join(parts[:depth])))
        return True


def _not_whole(name: str, error: Exception) -> FetchError:
    return FetchError(
        f"{name} is not a complete archive",
        cause=f"{type(error).__name__}: {error}"[:500],
        next_step="the published file is broken: name another source in the recipe, or report it upstream",
        subject=name,
    )


def _unpack_tar(
    archive: Path, extraction: Extraction, name: str, subdir: str, wrapped: bool, dropped: Dropped
) -> None:
    meter = Meter(SOURCES, archive.stat().st_size)
    with archive.open("rb") as file, open_tar(cast("IO[bytes]", Unpacked(file, meter)), meter) as tar:
        wrapper = "" if wrapped else None
        for member in tar.entries():
            with _refusing(name, member.name):
                parts = checked_parts(member.name)
                if not parts or dropped.drops(parts):
                    continue
                if wrapper == "":
                    wrapper = parts[0] if len(parts) > 1 or member.isdir() else None
                target = _without_wrapper(parts, wrapper, subdir)
                if target:
                    _extract(tar, member, target, wrapper, subdir, extraction)
    with _refusing(name, ""):
        extraction.close_links()


def _extract(
    tar: tarfile.TarFile,
    member: tarfile.TarInfo,
    target: Parts,
    wrapper: str | None,
    subdir: str,
    extraction: Extraction,
) -> None:
    if member.isdir():
        extraction.make_folder(target)
    elif member.issym():
        extraction.add_link(target, member.linkname)
    elif member.islnk():
        linked = _without_wrapper(checked_parts(member.linkname), wrapper, subdir)
        if not linked:
            raise UnsafeMemberError(f"it links to {member.linkname}, outside the unpacked part")
        extraction.add_hard_link(target, linked)
    elif member.isreg():
        mode = 0o755 if member.mode & 0o100 else 0o644
        written = extraction.write_file(target, _content(tar, member), mode=mode, mtime=member.mtime)
        if written != member.size:
            raise EOFError(f"{member.name} ends after {written} of {member.size} bytes")
    else:
        raise UnsafeMemberError("it is a device or a pipe")


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    body = tar.extractfile(member)
    assert body is not None
    while chunk := body.read(CHUNK):
        yield chunk


@contextmanager
def _refusing(archive: str, member: str) -> Iterator[None]:
    try:
        yield
    except UnsafeMemberError as error:
        raise _hostile(archive, error.path or member, str(error)) from error


def _without_wrapper(parts: Parts, wrapper: str | None, subdir: str) -> Parts:
    if wrapper is not None and parts[:1] == (wrapper,):
        parts = parts[1:]
    return _relative_to(parts, subdir)


def _unpack_zip(archive: Path, extraction: Extraction, name: str, subdir: str, dropped: Dropped) -> None:
    with zipfile.ZipFile(archive) as bundle:
        members = bundle.infolist()
        meter = Meter(SOURCES, archive.stat().st_size)
        meter.spend(len(members), "files")
        meter.spend(sum(member.file_size for member in members))
        for member in members:
            with _refusing(name, member.filename):
                parts = checked_parts(member.filename)
                target = _relative_to(parts, subdir)
                if not target or member.is_dir() or dropped.drops(parts):
                    continue
                if stat.S_ISLNK(member.external_attr >> 16):
                    raise UnsafeMemberError("it is a link")
                mode = 0o755 if (member.external_attr >> 16) & 0o111 else 0o644
                extraction.write_file(target, _zip_content(bundle, member), mode=mode, mtime=None)


def _zip_content(bundle: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    with bundle.open(member) as source:
        while chunk := source.read(CHUNK):
            yield chunk


def _relative_to(parts: Parts, subdir: str) -> Parts:
    prefix = PurePosixPath(subdir).parts
    return parts[len(prefix) :] if parts[: len(prefix)] == prefix else ()


def _hostile(archive: str, member: str, reason: str) -> FetchError:
    return FetchError(
        f"{archive} is refused: {f'its member {member!r}' if member else 'it'} is not safe to unpack",
        cause=reason,
        next_step="do not use this archive: find out where it came from, and name another source in "
        "the recipe",
        subject=archive,
    )


def pack(folder: Path, target: Path, *, epoch: int) -> str:
    """Pack the tree under `folder` as .tar.zst: sorted, no owners, one time (`epoch`), modes 644 and 755.

    The same tree gives the same tar on every machine, whose hex sha256 this returns; compressed, it is the
    same bytes with the same libzstd.
    """
    with packing(target) as packed:
        with tarfile.open(fileobj=cast("IO[bytes]", packed), mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for path in walk(folder):
                tar_add(tar, path, str(path.relative_to(folder)), epoch)
        return packed.content


def tar_add(tar: tarfile.TarFile, path: Path, name: str, epoch: int) -> None:
    """Add one file, link or folder to a tar with nothing of this machine in its header."""
    info = tar.gettarinfo(path, arcname=name)
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = epoch
    if info.islnk():
        info.type, info.linkname, info.size = tarfile.REGTYPE, "", path.stat().st_size
    if not info.issym():
        info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
    if info.isreg():
        with path.open("rb") as file:
            tar.addfile(info, file)
    else:
        tar.addfile(info)


def walk(folder: Path) -> Iterator[Path]:
    """Everything under `folder`, folders before what they hold, in the order of bytes."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: os.fsencode(entry.name)):
            yield Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                yield from walk(Path(entry.path))
