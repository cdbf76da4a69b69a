"""Work on data that come by, done beside what brings them: while the next piece is inflated, for one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

MOST_WAITING = 8
"""Pieces that wait at most; each is kept in memory until its turn."""


class Beside:
    """Calls done in their order, in a thread of their own where there is more than a `little` to do.

    At the end of the context all are done. What one raises comes out there, or from a later `do`.
    """

    def __init__(self, *, little: bool) -> None:
        self._pool = None if little else ThreadPoolExecutor(1)
        self._waiting: deque[Future[None]] = deque()

    def __enter__(self) -> Beside:
        return self

    def do(self, call: Callable[[int, bytes], None], at: int, data: bytes) -> None:
        """Call it with these, soon."""
        if self._pool is None:
            call(at, data)
            return
        self._waiting.append(self._pool.submit(call, at, data))
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popleft().result()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            for one in self._waiting:
                if error is None:
                    one.result()
