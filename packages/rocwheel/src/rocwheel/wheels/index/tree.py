"""Where a written index lies, and the kind that is a folder. Keys are paths with slashes."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import Protocol

from rocwheel.errors import InputError
from rocwheel.wheels.index.examine import Seen, open_as_seen
from rocwheel.wheels.index.pages import JSON

CHUNK = 1 << 20

FILE_TYPE = "application/octet-stream"
PAGE_TYPES = {".html": "text/html; charset=utf-8", ".v1_json": JSON, ".json": "application/json"}


class Tree(Protocol):
    """What an index is written to. Every file appears whole or not at all."""

    several_processes: bool
    """Whether other processes may write to the same tree through a copy of this object."""

    def holds(self, folder: Path) -> bool:
        """Whether the wheels of `folder` lie in this tree already."""

    def survey(self) -> None:
        """Get ready for a comparison of everything."""

    def read(self, key: str) -> bytes | None:
        """A small file, None where it is not there."""

    def chunks(self, key: str) -> Iterator[bytes]:
        """A large file, a part at a time."""

    def size(self, key: str) -> int | None:
        """Its bytes, None where it is not there."""

    def put(self, key: str, data: bytes) -> bool:
        """Write a small file; False where it is there with this content."""

    def put_wheel(self, key: str, folder: Path, seen: Seen) -> bool:
        """Bring a wheel; `key` holds its hash, so that one that is there is the same. False where it is."""

    def keys(self, prefix: str) -> Iterator[str]:
        """What lies below the folder `prefix`."""

    def delete(self, keys: Iterable[str]) -> int:
        """Remove files; how many were there."""

    def settle(self) -> None:
        """Wait until what was written would survive a power failure."""


def content_type(key: str) -> str:
    """The content type of a file of the tree."""
    return next((kind for end, kind in PAGE_TYPES.items() if key.endswith(end)), FILE_TYPE)


class FolderTree:
    """A tree in a folder. A wheel is brought as a hard link, or as a copy where that cannot be."""

    several_processes = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self._inside: set[Path] = set()

    def holds(self, folder: Path) -> bool:
        return folder.resolve() == self.path.resolve()

    def read(self, key: str) -> bytes | None:
        return _read(self.path / key)

    def survey(self) -> None:
        """Files of a folder are compared one by one."""

    def chunks(self, key: str) -> Iterator[bytes]:
        with (self.path / key).open("rb") as file:
            while data := file.read(CHUNK):
                yield data

    def size(self, key: str) -> int | None:
        try:
            return (self.path / key).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def put(self, key: str, data: bytes) -> bool:
        path = self.path / key
        if _read(path) == data:
            return False
        with self._whole(path) as file:
            _write_all(file, data)
        return True

    def put_wheel(self, key: str, folder: Path, seen: Seen) -> bool:
        path = self.path / key
        if self.size(key) == seen.size:
            return False
        with open_as_seen(folder, seen) as source:
            self._stays_inside(path.parent)
            path.unlink(missing_ok=True)
            try:
                os.link(folder / seen.path, path, follow_symlinks=False)
            except OSError:
                with self._whole(path) as target:
                    shutil.copyfileobj(source, target, CHUNK)
                return True
            if path.stat().st_ino != seen.inode:
                path.unlink()
                open_as_seen(folder, seen).close()
        return True

    def keys(self, prefix: str) -> Iterator[str]:
        for parent, _, names in os.walk(self.path / prefix):
            for name in names:
                yield Path(parent, name).relative_to(self.path).as_posix()

    def delete(self, keys: Iterable[str]) -> int:
        count = 0
        for key in keys:
            path = self.path / key
            try:
                path.unlink()
            except (FileNotFoundError, NotADirectoryError):
                continue
            count += 1
            with contextlib.suppress(OSError):  # the first folder that is not empty ends this
                for parent in path.relative_to(self.path).parents[:-1]:
                    (self.path / parent).rmdir()
        return count

    def settle(self) -> None:
        os.sync()

    @contextlib.contextmanager
    def _whole(self, path: Path) -> Iterator[FileIO]:
        """A file that appears at once, without waiting for the disk: `settle` does that for all of them."""
        folder = path.parent
        self._stays_inside(folder)
        part = folder / f".{os.getpid()}-{threading.get_ident()}.part"
        try:
            file = part.open("xb", buffering=0)
        except FileExistsError:  # a process of that number was killed
            part.unlink()
            file = part.open("xb", buffering=0)
        try:
            with file:
                yield file
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def _stays_inside(self, folder: Path) -> None:
        """Make a folder of the tree. Raises InputError where a link leads out of the tree."""
        if folder in self._inside:
            return
        if not folder.resolve().is_relative_to(self.path.resolve()):
            raise InputError(
                f"{folder} is a link that leads out of {self.path}",
                cause="there is a link where the index is to be written",
                next_step="remove the link, or give another folder with --out",
            )
        folder.mkdir(parents=True, exist_ok=True)
        self._inside.add(folder)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _write_all(file: FileIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
