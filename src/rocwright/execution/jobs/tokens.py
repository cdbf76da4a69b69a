"""The fifo that holds the tokens; its owner alone decides how many there are.

The protocol is GNU make's (manual, "POSIX Jobserver Interaction"): a client takes a byte before it starts a
process beyond its first, and writes it back when that has ended. A client may be killed with tokens in its
hands, write more than it took, or read without end: nothing here ever waits for one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import termios
from dataclasses import dataclass, field
from pathlib import Path

NAME = "tokens"
TOKEN = b"+"

PAGES = 16
"""The fifo's size, which bounds what a hostile writer leaves in it."""


@dataclass(slots=True)
class Tokens:
    """An open fifo. Not safe for several threads: the job server's own thread has it."""

    path: Path
    _descriptor: int = field(repr=False)

    @classmethod
    def create(cls, folder: Path) -> Tokens:
        """A new fifo in a private folder; one that is there already was left over, and goes.

        The fifo may be opened by everybody (the sandbox's user is another than its owner); the folder's mode
        (0700) keeps others on the machine out.
        """
        path = folder / NAME
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        path.chmod(0o666)
        # opened both ways: that never waits for another end, and readers see no end while the server lives
        descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        with contextlib.suppress(OSError):
            # never one page: once its end is reached nothing more goes in before the last byte of it is read
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PAGES * os.sysconf("SC_PAGE_SIZE"))
        return cls(path, descriptor)

    def held(self) -> int:
        """Tokens that lie in the fifo."""
        answer = bytearray(4)
        fcntl.ioctl(self._descriptor, termios.FIONREAD, answer)
        return int.from_bytes(answer, sys.byteorder)

    def put(self, count: int) -> int:
        """Add tokens; how many went in (fewer where the fifo is full)."""
        with contextlib.suppress(BlockingIOError):
            return os.write(self._descriptor, TOKEN * count) if count > 0 else 0
        return 0

    def take(self, count: int) -> int:
        """Take tokens away; how many there were."""
        with contextlib.suppress(BlockingIOError):
            return len(os.read(self._descriptor, count)) if count > 0 else 0
        return 0

    def close(self) -> None:
        """Close and remove the fifo. Clients that still have it open keep what they hold."""
        os.close(self._descriptor)
        self.path.unlink(missing_ok=True)
