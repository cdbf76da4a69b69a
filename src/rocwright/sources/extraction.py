"""A folder that an archive of a stranger is written into, component by component and through no link.

Paths are not compared as text: `realpath` stops following links past PATH_MAX, and an archive of long folder
names and links could write outside. Every component is opened from the descriptor of the one above it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# Components and bytes of a member's path, and of what a link names: half of PATH_MAX, so that a user's own
# folder fits in front of it. The longest path of torch's sources has 230 bytes.
MOST_DEPTH, MOST_PATH = 128, 2048

# Links that the kernel follows in a path before it gives up.
MOST_HOPS = 40

Parts = tuple[str, ...]


class UnsafeMemberError(Exception):
    """A member that would leave the folder: the reason, and its path where the caller may not know it."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.path = path


def checked_parts(name: str) -> Parts:
    """Return the components of a member's name. Raises UnsafeMemberError for one that leaves the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
        raise UnsafeMemberError("its name points outside the folder")
    parts = tuple(part for part in path.parts if part != ".")
    if len(parts) > MOST_DEPTH or len(os.fsencode(name)) > MOST_PATH:
        raise UnsafeMemberError(f"its path is longer than {MOST_PATH} bytes or {MOST_DEPTH} folders")
    return parts


@dataclass
class Extraction:
    """Files, folders and links written into `target`. Links are made last, by `close_links`."""

    target: Path
    links: dict[Parts, str] = field(default_factory=dict)
    _open: list[tuple[str, int]] = field(default_factory=list)
    """The folder that was used last and those around it, each with its descriptor, the target first."""
    _is_new: bool = True

    def __enter__(self) -> Self:
        self._open = [("", os.open(self.target, _FOLDER))]
        self._is_new = not any(self.target.iterdir())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(0)

    def make_folder(self, parts: Parts) -> None:
        self._enter(parts)

    def write_file(self, parts: Parts, content: Iterable[bytes], *, mode: int, mtime: float | None) -> int:
        """Write a file in the place of whatever file or link is there; return its size in bytes."""
        parent, size = self._enter(parts[:-1]), 0
        self._remove(parent, parts)
        descriptor = os.open(parts[-1], _NEW_FILE, mode, dir_fd=parent)
        with os.fdopen(descriptor, "wb") as file:
            for chunk in content:
                size += file.write(chunk)
            os.fchmod(descriptor, mode)
            if mtime is not None:
                file.flush()
                os.utime(descriptor, (mtime, mtime))
        return size

    def add_hard_link(self, parts: Parts, source: Parts) -> None:
        """Make `parts` another name of a file, or of a link. Raises KeyError if there is no such file."""
        if source in self.links:
            self.add_link(parts, self.links[source])
            return
        try:
            above = os.dup(self._enter(source[:-1], make=False))
        except OSError as error:
            raise KeyError("/".join(source)) from error
        try:
            status = os.stat(source[-1], dir_fd=above, follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode):
                raise KeyError("/".join(source))
            parent = self._enter(parts[:-1])
            if parts != source:
                self._remove(parent, parts)
                os.link(source[-1], parts[-1], src_dir_fd=above, dst_dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError as error:
            raise KeyError("/".join(source)) from error
        finally:
            os.close(above)

    def add_link(self, parts: Parts, aim: str) -> None:
        """Remember a symbolic link until all files are written."""
        if not 0 < len(os.fsencode(aim)) <= MOST_PATH:
            raise UnsafeMemberError("the path that it links to is empty or too long")
        self._remove(self._enter(parts[:-1]), parts)
        self.links[parts] = aim

    def close_links(self) -> None:
        """Make the links. Raises UnsafeMemberError, before any is made, if one leads out of the folder."""
        links = self._present_links() | self.links
        for parts in links:
            if not stays_inside(parts, links):
                raise UnsafeMemberError(f"it links to {links[parts]}, outside the folder", "/".join(parts))
        for parts, aim in self.links.items():
            os.symlink(aim, parts[-1], dir_fd=self._enter(parts[:-1]))
        self.links = {}

    def _present_links(self) -> dict[Parts, str]:
        """Return the links that an archive before this one has left in the folder."""
        present: dict[Parts, str] = {}
        if self._is_new:
            return present
        for folder, folders, files, descriptor in os.fwalk(dir_fd=self._open[0][1], follow_symlinks=False):
            for name in (*folders, *files):
                if stat.S_ISLNK(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                    parts = (*PurePosixPath(folder).parts, name)
                    present[parts] = os.readlink(name, dir_fd=descriptor)
        return present

    def _remove(self, parent: int, parts: Parts) -> None:
        """Remove the file or link at a place. A folder there raises IsADirectoryError."""
        self.links.pop(parts, None)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(parts[-1], dir_fd=parent)

    def _enter(self, parts: Parts, *, make: bool = True) -> int:
        """Return the descriptor of a folder, made if it is missing."""
        shared = 0
        while shared < min(len(parts), len(self._open) - 1) and self._open[shared + 1][0] == parts[shared]:
            shared += 1
        self._leave(shared + 1)
        for depth in range(shared, len(parts)):
            if parts[: depth + 1] in self.links:
                raise UnsafeMemberError(f"its folder {'/'.join(parts[: depth + 1])} is a link")
            self._open.append((parts[depth], self._folder_in(self._open[-1][1], parts[depth], make=make)))
        return self._open[-1][1]

    def _folder_in(self, parent: int, name: str, *, make: bool) -> int:
        try:
            return os.open(name, _FOLDER, dir_fd=parent)
        except FileNotFoundError:
            if not make:
                raise
            os.mkdir(name, dir_fd=parent)
            return os.open(name, _FOLDER, dir_fd=parent)

    def _leave(self, depth: int) -> None:
        while len(self._open) > depth:
            os.close(self._open.pop()[1])


def stays_inside(parts: Parts, links: dict[Parts, str]) -> bool:
    """Return whether a link, followed through all `links`, never leaves the folder that they are in."""
    folder: list[str] = list(parts[:-1])
    ahead = _components(links[parts])
    hops = 0
    if ahead is None:
        return False
    while ahead:
        step = ahead.pop()
        if step == "..":
            if not folder:
                return False
            folder.pop()
            continue
        folder.append(step)
        if tuple(folder) in links:
            hops += 1
            further = _components(links[tuple(folder)])
            folder.pop()
            if further is None:
                return False
            if hops > MOST_HOPS:
                return True  # the kernel follows it nowhere (ELOOP)
            ahead += further
    return True


def _components(aim: str) -> list[str] | None:
    """Return the components of what a link names, the last first; None for an absolute path."""
    path = PurePosixPath(aim)
    return None if path.is_absolute() else [part for part in reversed(path.parts) if part != "."]
