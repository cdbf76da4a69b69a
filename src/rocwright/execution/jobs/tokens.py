"""The fifo that holds the tokens; its owner alone decides how many there are.

The protocol is GNU make's (manual, "POSIX Jobserver Interaction"): a client takes a byte before it starts a
process beyond its first, and writes it back when that has ended. A client may be killed with tokens in its
hands, write more than it took, or read without end: nothing here ever waits for one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import sys
import termios
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread

NAME = "tokens"
TOKEN = b"+"

PAGES = 16
"""The fifo's size, which bounds what a hostile writer leaves in it."""


class Drain:
    """Waits for tokens that clients give back, and takes as many as are wanted.

    A make that has more to compile takes a token again a moment after it gave it back: who only looks now and
    then never finds it. A thread that waits for it comes first within some ten times, and where it may have
    real-time priority (root may) the first time.
    """

    def __init__(self, fifo: int) -> None:
        self._fifo = fifo
        self._lock = Lock()
        self._wanted = self._taken = 0
        self._closed = False
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def want(self, count: int) -> None:
        """Take so many, and no more."""
        with self._lock:
            self._wanted = count
        os.eventfd_write(self._wake, 1)

    def taken(self) -> int:
        """How many it took since it was asked last."""
        with self._lock:
            count, self._taken = self._taken, 0
        return count

    def close(self) -> None:
        """Take no more; the thread has ended then."""
        self._closed = True
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        os.close(self._wake)

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        both, wake = select.poll(), select.poll()
        for poll in (both, wake):
            poll.register(self._wake, select.POLLIN)
        both.register(self._fifo, select.POLLIN)
        while not self._closed:
            (both if self._wanted else wake).poll()
            self._take()
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._wake)

    def _take(self) -> None:
        with self._lock, contextlib.suppress(BlockingIOError):
            if self._wanted:
                count = len(os.read(self._fifo, self._wanted))
                self._wanted -= count
                self._taken += count


@dataclass(slots=True)
class Tokens:
    """An open fifo. Not safe for several threads: the job server's own thread has it."""

    path: Path
    _descriptor: int = field(repr=False)
    _drain: Drain | None = field(default=None, init=False, repr=False)

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

    def drain(self, count: int) -> None:
        """From now on take away the next `count` tokens that are given back, 0 for none."""
        if count > 0 and self._drain is None:
            self._drain = Drain(self._descriptor)
        if self._drain is not None:
            self._drain.want(count)

    def drained(self) -> int:
        """How many of those were taken away since it was asked last."""
        return self._drain.taken() if self._drain is not None else 0

    def close(self) -> None:
        """Close and remove the fifo. Clients that still have it open keep what they hold."""
        if self._drain is not None:
            self._drain.close()
        os.close(self._descriptor)
        self.path.unlink(missing_ok=True)
