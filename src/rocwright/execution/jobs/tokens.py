"""The fifo that holds the tokens; its owner alone decides how many there are.

The protocol is GNU make's (manual, "POSIX Jobserver Interaction"): a client takes a byte before it starts a
process beyond its first, and writes it back when that has ended. A client may be killed with tokens in its
hands, write more than it took, or read without end: nothing here ever waits for one.

Nobody knows who holds a token, only how many are out. `Circulation` sees two things besides: how many threads
live in the steps (a token that nobody can hold any more is lost), and how many processes work (more than
tokens explain were started by tools that know no job server, so that many fewer are issued).

The first process of a step needs no token. It may have one all the same: ninja starts two, the one without
a token ends, and the other, a link of minutes, goes on alone. So a token counts as lost only once all have
ended that it could have been taken for.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import sys
import termios
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from threading import Lock, Thread

NAME = "tokens"
TOKEN = b"+"

# The fifo's size, which bounds what a hostile writer leaves in it.
PAGES = 16

# Seconds for which something must hold without a break before it is believed.
#
# A client takes a token some moments before its process is there, and gives it back some moments after.
PATIENCE = 2.0

# Seconds in one look for a process that writes tokens of its own without end.
WRITERS = 0.05


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


@dataclass(slots=True)
class Lasting:
    """The values that a number had within the last `PATIENCE` seconds."""

    _values: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, timestamp: float, value: int) -> None:
        """Take in a value."""
        self._values.append((timestamp, value))
        while len(self._values) > 1 and self._values[1][0] <= timestamp - PATIENCE:
            self._values.popleft()

    def least(self) -> int:
        """The least of them; 0 until so long has passed."""
        return max(0, min(value for _, value in self._values)) if self._window_is_full() else 0

    def usual(self) -> int:
        """Their mean; 0 until so long has passed."""
        return max(0, round(mean(value for _, value in self._values))) if self._window_is_full() else 0

    def forget(self) -> None:
        """Begin anew."""
        self._values.clear()

    def _window_is_full(self) -> bool:
        return bool(self._values) and self._values[0][0] <= self._values[-1][0] - PATIENCE


@dataclass(slots=True)
class Circulation:
    """Keeps `tokens` at what is wanted. Only the job server's thread has it."""

    tokens: Tokens
    _there: int = 0
    _lost: Lasting = field(default_factory=Lasting)
    _holders: frozenset[int] | None = None
    """Processes that a token which seems lost may have been taken for; None where none seems lost."""
    _surplus: Lasting = field(default_factory=Lasting)
    _unexplained: int = 0
    flooded: bool = False
    """Whether somebody still wrote at the last look."""

    def out(self) -> int:
        """Tokens in the hands of clients, lost ones too. What somebody wrote beyond what there is, is taken
        away, for `WRITERS` seconds where more of it comes."""
        self._there -= self.tokens.drained()
        idle = self.tokens.held()
        self.flooded = idle > self._there
        end = time.monotonic() + (WRITERS if self.flooded else 0)
        while time.monotonic() < end:
            self.tokens.take(idle - self._there)
            time.sleep(WRITERS / 50)  # for one that waits to write more
            idle = self.tokens.held()
        return max(0, self._there - idle)

    def note(
        self, timestamp: float, *, out: int, threads: int, surplus: int, started: frozenset[int]
    ) -> None:
        """Take in what was seen at once: `out` tokens, `threads` that could have one each, by how many the
        processes that work are more than those that tokens explain, and the processes that clients have
        `started`."""
        if out <= threads:
            self._holders = None
        else:
            self._holders = started if self._holders is None else self._holders & started
        self._lost.note(timestamp, out - threads)
        if not self._holders and (lost := self._lost.least()):
            self._there -= lost
            self._lost.forget()
        self._surplus.note(timestamp, surplus - out)
        self._unexplained = self._surplus.usual()

    def settle(self, total: int) -> None:
        """Have `total` tokens in all, less what works without; those in the hands of clients are awaited,
        and not let go again."""
        target = max(0, total - self._unexplained)
        self.tokens.drain(0)
        self._there -= self.tokens.drained()
        if target > self._there:
            self._there += self.tokens.put(target - self._there)
        elif target < self._there:
            self._there -= self.tokens.take(self._there - target)
            self.tokens.drain(self._there - target)
