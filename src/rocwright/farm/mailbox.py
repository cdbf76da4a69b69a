"""Hands events from many threads to one, in batches: a step that says a lot costs little."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event as Flag
from typing import Generic, TypeVar

T = TypeVar("T")

# Seconds after which one who found no room looks again.
FULL = 0.01


class Mailbox(Generic[T]):
    """Holds at most some `most` things: who has more to say waits until they are taken. Many may put, one
    takes."""

    def __init__(self, limit: int) -> None:
        self._most = limit
        self._things: deque[T] = deque()
        self._flag = Flag()
        self._closed = False
        self._overflows = False

    def __len__(self) -> int:
        return len(self._things)

    @property
    def full(self) -> bool:
        return len(self._things) >= self._most

    def put(self, thing: T) -> None:
        """Put one in, once there is room; into one that is closed nothing is put."""
        while self.full and not self._closed and not self._overflows:
            time.sleep(FULL)
        if not self._closed:
            self._things.append(thing)
            # no lock for each of a hundred thousand lines
            if not self._flag.is_set():
                self._flag.set()

    def take(self, seconds: float) -> list[T]:
        """All that is in it; where nothing is, it is waited for so long."""
        self._flag.wait(seconds)
        # before they are counted: what comes later sets it again
        self._flag.clear()
        return [self._things.popleft() for _ in range(len(self._things))]

    @contextmanager
    def overflowing(self) -> Iterator[None]:
        """Let nobody wait for room meanwhile: the one who takes needs an answer of one who puts."""
        self._overflows = True
        try:
            yield
        finally:
            self._overflows = False

    def wake(self) -> None:
        """Let the one who takes look again at once, with nothing new in it."""
        self._flag.set()

    def close(self) -> None:
        """Nobody takes any more; nobody waits for it."""
        self._closed = True
