"""Folders that a step could write, removed: nothing outside is touched, however deep or odd they are."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from rocbase.folders.listing import FolderEntry, Level

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEPTH = 128
"""Folders held open at once; what lies deeper is first moved up."""


def remove_tree(path: Path) -> bool:
    """Remove a folder and all in it, or a file or link; whether it is gone.

    No link is followed. A folder that its owner may not write is made writable first. What the caller may
    not remove stays.
    """
    try:
        parent = os.open(path.parent, _FOLDER & ~os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return True
    try:
        _remove(parent, path.name)
    finally:
        os.close(parent)
    return not os.path.lexists(path)


def _remove(parent: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError, PermissionError):
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=parent)
            return
        top = _opened(parent, name)
        try:
            while _empty(top):
                pass
        finally:
            os.close(top)
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=parent)


def _empty(top: int) -> bool:
    """Go once through all below an open folder and remove what can go; whether there may be more."""
    went = False
    levels = [Level(os.open(".", _FOLDER, dir_fd=top), "")]
    try:
        while levels:
            level = levels[-1]
            with contextlib.suppress(OSError):
                entry = level.next()
                if entry is None:
                    levels.pop().close()
                    if not levels:
                        break
                    os.rmdir(level.path.rpartition("/")[2], dir_fd=levels[-1].descriptor)
                elif not entry.is_folder:
                    os.unlink(entry.name, dir_fd=entry.parent)
                elif len(levels) < _DEPTH:
                    levels.append(Level(_opened(entry.parent, entry.name), entry.path))
                    continue
                else:
                    _move_up(entry, top)
                went = True
    finally:
        for level in levels:
            level.close()
    return went


def _move_up(entry: FolderEntry, top: int) -> None:
    os.close(_opened(entry.parent, entry.name))
    os.rename(entry.name, f".{secrets.token_hex(16)}", src_dir_fd=entry.parent, dst_dir_fd=top)


def _opened(parent: int, name: str) -> int:
    """A folder, open, and writable for its owner."""
    try:
        descriptor = os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            # the only way to change the mode of a folder that may not be opened, without following a link
            Path(f"/proc/self/fd/{handle}").chmod(0o700)
        finally:
            os.close(handle)
        return os.open(name, _FOLDER, dir_fd=parent)
    if os.fstat(descriptor).st_mode & 0o700 != 0o700:
        with contextlib.suppress(OSError):
            os.fchmod(descriptor, 0o700)
    return descriptor
