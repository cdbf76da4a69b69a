"""Writes what a server prints to its log, of which two files of a bounded size are kept.

A program of its own, started by its path: what it reads comes from the server's pipe until that ends, long
after rocwright has. It leaves its starter once the log is open, and stays the holder of a lock until all is
written. Of what cannot be written (a full disk, a folder that is gone) it reads on, for a server must not
wait for its log.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys

PIECE = 64 * 1024


def write(source: int, log: str, target: int, limit: int) -> None:
    """All of `source` into `log`, open as `target`; a full one becomes `log`.1, and that is gone. Lines stay
    whole."""
    size = os.fstat(target).st_size
    while piece := os.read(source, PIECE):
        with contextlib.suppress(OSError):
            # of a line that came in pieces the first are not left behind, unless it has no end
            end = piece.rfind(b"\n") + 1 or len(piece) * (size > 2 * limit)
            if size + len(piece) > limit and end:
                os.write(target, piece[:end])
                os.rename(log, f"{log}.1")  # noqa: PTH104 - without pathlib it starts sooner
                os.close(target)
                target, size, piece = _opened(log), 0, piece[end:]
            size += os.write(target, piece)


def _opened(log: str) -> int:
    return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)


def main() -> None:
    """LOG LOCK BYTES; standard input is what is written."""
    log, lock, limit = sys.argv[1:]
    target = _opened(log)  # by the starter's time: its folder may be gone when this one's turn comes
    lock_file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    fcntl.flock(lock_file, fcntl.LOCK_SH)
    if os.fork():
        os._exit(0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.chdir("/")  # the starter's folder may go
    write(0, log, target, int(limit))


if __name__ == "__main__":
    main()
