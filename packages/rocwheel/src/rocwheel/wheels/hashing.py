"""The sha256 of what comes in pieces; of much, computed in a thread beside whoever makes them.

hashlib lets other threads run while it computes.
"""

from __future__ import annotations

import hashlib
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

BEGINNING = 4 * 1024**2
"""Bytes that the caller's thread takes: for few, another is not worth starting."""

AHEAD = 8
"""Pieces that may wait for the thread."""


class Sha256:
    """A sha256 that may lag a few pieces behind; the pieces are not to change."""

    def __init__(self) -> None:
        self.size = 0
        self._digest = hashlib.sha256()
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[None]] = deque()
        self._threaded = True

    def update(self, piece: bytes) -> None:
        """Go on with these bytes."""
        self.size += len(piece)
        if self.size < BEGINNING or not self._submitted(piece):
            self._digest.update(piece)

    def hexdigest(self) -> str:
        """Of all of them, in hexadecimal; its thread ends."""
        self._wait(0)
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        return self._digest.hexdigest()

    def _submitted(self, piece: bytes) -> bool:
        """Whether a thread will do it; not where the system allows no more of them."""
        if not self._threaded:
            return False
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(1)
        self._wait(AHEAD - 1)
        try:
            self._waiting.append(self._pool.submit(self._digest.update, piece))
        except RuntimeError:
            self._wait(0)
            self._pool, self._threaded = None, False
        return self._threaded

    def _wait(self, limit: int) -> None:
        """Until no more than so many pieces are left."""
        while len(self._waiting) > limit:
            self._waiting.popleft().result()
