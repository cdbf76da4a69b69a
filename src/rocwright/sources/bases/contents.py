"""Whether an unpacked root file system is what its archive in the store holds, byte by byte."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import zstandard

from rocbase.files.atomic import CHUNK
from rocbase.files.bounds import TREES, OverBoundError
from rocbase.files.unpacking import Meter, open_tar
from rocwright.store.model import Store, chunks
from rocwright.store.packed import ChunkStream, unpacked

# The extended attribute that gives a program rights.
CAPABILITY = "security.capability"

_KINDS = {
    tarfile.DIRTYPE: stat.S_IFDIR,
    tarfile.SYMTYPE: stat.S_IFLNK,
    tarfile.CHRTYPE: stat.S_IFCHR,
    tarfile.BLKTYPE: stat.S_IFBLK,
    tarfile.FIFOTYPE: stat.S_IFIFO,
}


def fault(store: Store, sha256: str, root: Path) -> str:
    """The first name in which a root is not what its archive says, and what is wrong; "" where there is none.

    Raises KeyError where the store has not the archive, DamagedBlobError where that is damaged.
    """
    stream = ChunkStream(chunks(store, sha256))
    names: set[str] = set()
    wrong = ""
    try:
        with (
            unpacked(io.BufferedReader(stream)) as plain,
            open_tar(plain, Meter(TREES, 0)) as archive,
        ):
            for member in archive.entries():
                name = os.path.normpath(member.name)
                names.add(name)
                wrong = wrong or _wrong(root, name, member, archive)
    except (zstandard.ZstdError, tarfile.TarError, OverBoundError):
        # it is not the root that is damaged: that is said at the archive's end
        stream.drain()
        raise
    stream.drain()
    return wrong or next((f"{name}: it is not in the archive" for name in _names(root, names)), "")


def _wrong(root: Path, name: str, member: tarfile.TarInfo, archive: tarfile.TarFile) -> str:
    path = root / name
    try:
        status = path.lstat()
    except OSError:
        return f"{name}: it is gone"
    if member.islnk():
        return (
            "" if _same_file(path, status, root / os.path.normpath(member.linkname)) else _other_content(name)
        )
    if stat.S_IFMT(status.st_mode) != _KINDS.get(member.type, stat.S_IFREG):
        return f"{name}: it is of another kind"
    if not _same_rights(status, member, name):
        return f"{name}: it has another mode or owner"
    if member.issym() and os.fsdecode(path.readlink()) != member.linkname:
        return f"{name}: it leads elsewhere"
    if os.geteuid() == 0 and not member.issym() and _capability(path) != _capability_in(member):
        return f"{name}: it has other capabilities"
    if member.isreg():
        if int(status.st_mtime) != int(member.mtime):
            return f"{name}: it has another time"
        data = archive.extractfile(member)
        if status.st_size != member.size or data is None or not _same_bytes(path, data):
            return _other_content(name)
    return ""


def _other_content(name: str) -> str:
    return f"{name}: its bytes are others"


def _same_rights(status: os.stat_result, member: tarfile.TarInfo, name: str) -> bool:
    """Root unpacks with the archive's owners, a user as the user's own; the top folder is open to all."""
    as_root = os.geteuid() == 0
    owner = (member.uid, member.gid) if as_root else (os.geteuid(), status.st_gid)
    if (status.st_uid, status.st_gid) != owner and name != ".":
        return False
    return member.issym() or name == "." or stat.S_IMODE(status.st_mode) == member.mode & 0o7777


def _capability(path: Path) -> bytes:
    try:
        return os.getxattr(path, CAPABILITY, follow_symlinks=False)
    except OSError:
        return b""


def _capability_in(member: tarfile.TarInfo) -> bytes:
    return member.pax_headers.get(f"SCHILY.xattr.{CAPABILITY}", "").encode(errors="surrogateescape")


def _same_file(path: Path, status: os.stat_result, original: Path) -> bool:
    """Whether a second name is of the file of the first, or, in a copy, has the same bytes."""
    try:
        if os.path.samestat(status, original.lstat()):
            return True
        if not stat.S_ISREG(status.st_mode):
            return False
        with _opened(original) as data:
            return _same_bytes(path, data)
    except OSError:
        return False


def _same_bytes(path: Path, data: IO[bytes]) -> bool:
    try:
        with _opened(path) as file:
            while True:
                some = data.read(CHUNK)
                if file.read(len(some) or 1) != some:
                    return False
                if not some:
                    return True
    except OSError:
        return False


def _opened(path: Path) -> io.BufferedReader:
    """A regular file, open; no link is followed and nothing waited for. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError(f"{path} is no file")
    return file


def _names(root: Path, names: set[str]) -> Iterator[str]:
    """Names below a root that are not among those seen."""
    for folder, folders, files in os.walk(root):
        for entry in (*folders, *files):
            name = os.path.relpath(f"{folder}/{entry}", root)
            if name not in names:
                yield name
