"""What lies in a folder: entries as lstat tells them, and words for them."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass

_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderEntry:
    """Something in a folder, as lstat tells it; `parent` is the folder's descriptor, open until the next."""

    path: str
    stat: os.stat_result
    parent: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def kind(self) -> str:
        return kind_of(self.stat)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.stat.st_mode)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.stat.st_mode)


class Level:
    """A folder that is being listed; it owns its descriptor."""

    def __init__(self, descriptor: int, path: str) -> None:
        self.descriptor = descriptor
        self.path = path
        try:
            self._listing = os.scandir(descriptor)
        except BaseException:
            os.close(descriptor)
            raise

    def next(self) -> FolderEntry | None:
        """What comes next in it, None at its end; what went meanwhile is left out."""
        for entry in self._listing:
            with contextlib.suppress(FileNotFoundError):
                path = f"{self.path}/{entry.name}" if self.path else entry.name
                return FolderEntry(path=path, stat=entry.stat(follow_symlinks=False), parent=self.descriptor)
        return None

    def close(self) -> None:
        self._listing.close()
        os.close(self.descriptor)


def shown(name: str) -> str:
    """A name for a message: as it is where it is plain text, else with its odd characters as escapes."""
    plain = name if name.isprintable() else ascii(name)
    return plain if len(plain) <= 200 else f"{plain[:200]}..."


def kind_of(status: os.stat_result) -> str:
    """What lies there, in words."""
    return _KINDS.get(stat.S_IFMT(status.st_mode), "something")
