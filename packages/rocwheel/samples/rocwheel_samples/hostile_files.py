"""What a hostile step may leave: the same for the tests of every reader."""

from __future__ import annotations

import os
import signal
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def soon(seconds: int = 60) -> Iterator[None]:
    """Turns a hang into a failure, also where a thread or a system call waits."""

    def late(*_: object) -> None:
        raise TimeoutError(f"it did not end within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def make_zero(path: Path) -> None:
    """A device that never ends; only root can make one."""
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))


def make_link_to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_setuid(path: Path) -> None:
    path.write_text("x")
    path.chmod(0o4755)


def make_setgid(path: Path) -> None:
    path.write_text("x")
    path.chmod(0o2755)


def make_huge(path: Path) -> None:
    """4 TiB that take no room on the disk."""
    with path.open("wb") as file:
        file.truncate(2**42)


deep: list[Path] = []
"""Where make_deep was in this test; what is left of it goes after the test."""


def make_deep(folder: Path, levels: int) -> None:
    """Folders in folders, deeper than any path can name; shutil.rmtree, and so pytest, cannot remove them."""
    deep.append(folder)
    at = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=at))
    os.close(at)
