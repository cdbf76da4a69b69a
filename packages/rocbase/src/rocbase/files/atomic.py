"""The one hasher and the one atomic writer."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

CHUNK = 1024 * 1024


def is_git(name: str) -> bool:
    """Whether git, on any file system, takes what has this name for its own folder."""
    return name.rstrip(". ").casefold() in (".git", "git~1")


def sha256_bytes(data: bytes) -> str:
    """Hex sha256 of `data`."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """Hex sha256 of a file, read in chunks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def atomic_file(path: Path, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A file that appears at `path` whole (written, fsynced, renamed), or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        error.filename = str(path)
        raise
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        # a write that fails names no file
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise


def write_atomic(path: Path, data: bytes | str, mode: int = 0o644) -> None:
    """Write `data` to `path` whole or not at all."""
    with atomic_file(path, mode) as file:
        file.write(data.encode() if isinstance(data, str) else data)


def make_private(path: Path, mode: int) -> None:
    """Take away what others than its owner may do with a file or folder; what is another's stays as it is."""
    with contextlib.suppress(OSError):
        status = path.lstat()
        ours = status.st_uid == os.geteuid() and not stat.S_ISLNK(status.st_mode)
        if ours and stat.S_IMODE(status.st_mode) & ~mode:
            path.chmod(status.st_mode & mode)
