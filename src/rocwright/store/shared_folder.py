"""A shared store in a folder that others may write to: nothing in it is followed, and nothing waited for.

Every component is opened from the descriptor of the one above it. A link instead of a folder would have a
clean-up delete files elsewhere, and a FIFO in the place of a file would hold its reader for ever.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from rocbase.errors import InputError
from rocbase.files.atomic import CHUNK

_STORE = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = _STORE | os.O_NOFOLLOW
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# Stands in the name of a file that is being written: a listing leaves it out.
UNFINISHED = "#"


class Listed(NamedTuple):
    """An object: its name, its bytes, and when it was written, in seconds since the epoch."""

    name: str
    size: int
    written: float


class SharedFolder:
    """The objects below a folder. A missing one raises KeyError, one that is no regular file InputError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def chunks(self, name: str, begin: int) -> Iterator[bytes]:
        """Yield the bytes of an object from `begin` on."""
        with self._parent(name) as (parent, last):
            descriptor = self._opened(parent, last, name)
        with os.fdopen(descriptor, "rb") as file:
            file.seek(begin)
            while chunk := file.read(CHUNK):
                yield chunk

    def stat(self, name: str) -> os.stat_result:
        """Return the status of an object."""
        with self._parent(name) as (parent, last):
            return self._checked(os.lstat(last, dir_fd=parent), name)

    def list(self, folder: str) -> Iterator[Listed]:
        """Yield every object in a folder, at any depth; links and special files are none."""
        with contextlib.suppress(KeyError), self._parent(f"{folder}/x") as (top, _):
            for path, _, files, descriptor in os.fwalk(dir_fd=top):
                for name in files:
                    with contextlib.suppress(FileNotFoundError):
                        status = os.lstat(name, dir_fd=descriptor)
                        if stat.S_ISREG(status.st_mode) and UNFINISHED not in name:
                            full_name = os.path.normpath(f"{folder}/{path}/{name}")
                            yield Listed(full_name, status.st_size, status.st_mtime)

    def put(self, name: str, data: bytes | Path | Iterable[bytes], *, replace: bool) -> bool:
        """Write an object whole or not at all; return whether it was written, without `replace` only once."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._parent(name, make=True) as (parent, last):
            temporary = f"{last}{UNFINISHED}{secrets.token_hex()}"
            try:
                with os.fdopen(os.open(temporary, _NEW, 0o666, dir_fd=parent), "wb") as file:
                    file.writelines(_pieces(data))
                    file.flush()
                    os.fsync(file.fileno())
                if replace:
                    os.rename(temporary, last, src_dir_fd=parent, dst_dir_fd=parent)
                    return True
                os.link(temporary, last, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
            except FileExistsError:
                return False
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=parent)
        return True

    def remove(self, name: str) -> None:
        """Remove an object, if it is there."""
        with contextlib.suppress(KeyError), self._parent(name) as (parent, last):
            os.unlink(last, dir_fd=parent)

    @contextlib.contextmanager
    def _parent(self, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Open the folder that an object is in; gives its descriptor and the object's own name."""
        *folders, last = name.split("/")
        if any(part in ("", ".", "..") for part in (*folders, last)):
            raise ValueError(f"{name} is not the name of an object")
        try:
            descriptor = os.open(self.folder, _STORE)
        except FileNotFoundError:
            raise KeyError(name) from None
        try:
            for number, part in enumerate(folders, 1):
                child = self._open_below(descriptor, part, "/".join(folders[:number]), make=make)
                os.close(descriptor)
                descriptor = child
            try:
                yield descriptor, last
            except FileNotFoundError:
                raise KeyError(name) from None
        finally:
            os.close(descriptor)

    def _open_below(self, parent: int, part: str, path: str, *, make: bool) -> int:
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=parent)
        try:
            return os.open(part, _FOLDER, dir_fd=parent)
        except FileNotFoundError:
            raise KeyError(path) from None
        except NotADirectoryError:
            raise self._odd(path, "folder") from None

    def _opened(self, parent: int, last: str, name: str) -> int:
        # looked at before it is opened: to open a device can do something
        self._checked(os.lstat(last, dir_fd=parent), name)
        descriptor = os.open(last, _READ, dir_fd=parent)
        try:
            self._checked(os.fstat(descriptor), name)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _checked(self, status: os.stat_result, name: str) -> os.stat_result:
        if stat.S_ISDIR(status.st_mode):
            raise KeyError(name)  # parts of a file lie in a folder with its name
        if not stat.S_ISREG(status.st_mode):
            raise self._odd(name, "file")
        return status

    def _odd(self, name: str, kind: str) -> InputError:
        return InputError(
            f"{self.folder / name} is no {kind} of a store",
            cause="it is a link or a special file, which somebody put there who may write to that folder",
            next_step="remove it, and find out who may write there",
        )


def _pieces(data: bytes | Path | Iterable[bytes]) -> Iterator[bytes]:
    if isinstance(data, bytes):
        yield data
    elif isinstance(data, Path):
        with data.open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk
    else:
        yield from data
