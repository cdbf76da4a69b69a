"""Deflated data inflated block by block; of large ones the next blocks in a thread beside the caller.

isal lets other threads run while it inflates. The thread does nothing else: it reads no file, takes its
packed data from what the caller laid ready, and ends by itself a few blocks ahead. To begin a thread, or to
wait for one, takes a busy machine milliseconds: so it hands over many blocks at once, and goes on meanwhile.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from isal import igzip_lib

BLOCKS_AT_ONCE = 8
"""Blocks that the thread hands over together."""

BATCHES_AHEAD = 2
"""Times that, inflated before it is asked for, at most."""

PIECES_AHEAD = 4
"""Pieces of packed data that lie ready for the thread."""

BEGINNING = 8
"""Blocks that are inflated only when they are asked for: of many files no more is wanted than these."""


class _Batch(NamedTuple):
    """Some blocks, or parts of such; `failed` is why there are no more of them."""

    parts: list[bytes]
    failed: Exception | None


class Inflating:
    """What raw deflated data inflate to, `size` bytes at a time."""

    def __init__(self, packed: Iterator[bytes], size: int) -> None:
        self._packed = packed
        self._block = size
        self._size = 0
        self._ready: deque[bytes] = deque()
        self._failed: Exception | None = None
        self._exhausted = False
        # of whoever inflates: the thread where one runs, else the caller
        self._inflate = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE)
        self._room = size
        # of both
        self._pieces: deque[bytes] = deque()
        self._batches: deque[_Batch] = deque()
        self._running = False
        self._turn = threading.Condition()

    @property
    def is_whole(self) -> bool:
        """After the last block: whether the data say themselves that they end there."""
        return bool(self._inflate.eof)

    def block(self) -> bytes:
        """The next block of bytes; fewer at the end, and where the data are cut short.

        Raises isal's error where they are damaged, once the blocks inflated before are given.
        """
        parts: list[bytes] = []
        size = 0
        while size < self._block and (part := self._part()):
            parts.append(part)
            size += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _part(self) -> bytes:
        """Bytes up to the end of a block at most; none at the end."""
        while not self._ready:
            if self._failed is not None:
                raise self._failed
            batch = self._from_thread() if self._size >= BEGINNING * self._block else None
            if batch is None:
                self._lay_ready(1)
                batch = self._inflated(1)
            self._ready += batch.parts
            self._size += sum(map(len, batch.parts))
            self._failed = batch.failed
            if not batch.parts and batch.failed is None and self._is_over():
                return b""
        return self._ready.popleft()

    def _is_over(self) -> bool:
        """Whether nothing more will come, of a thread that may be at it either."""
        with self._turn:
            if self._running or self._batches:
                return False
            return bool(self._inflate.eof) or (self._exhausted and not self._pieces)

    def _lay_ready(self, count: int) -> None:
        while len(self._pieces) < count and not self._exhausted:
            if piece := next(self._packed, b""):
                self._pieces.append(piece)
            else:
                self._exhausted = True

    def _from_thread(self) -> _Batch | None:
        """What the thread has inflated, which goes on; None where there is nothing of it."""
        self._lay_ready(PIECES_AHEAD)
        self._go_on()
        with self._turn:
            while self._running and not self._batches:
                self._turn.wait()
            if not self._batches:
                return None
            batch = self._batches.popleft()
        self._go_on()
        return batch

    def _go_on(self) -> None:
        """Have the thread inflate, where it may and the system allows one more."""
        with self._turn:
            if self._running or len(self._batches) >= BATCHES_AHEAD:
                return
            if self._inflate.eof or (self._inflate.needs_input and not self._pieces):
                return
            self._running = True
        try:
            threading.Thread(target=self._run).start()
        except RuntimeError:
            self._running = False

    def _run(self) -> None:
        running = True
        while running:
            batch = self._inflated(BLOCKS_AT_ONCE)
            with self._turn:
                self._batches.append(batch)
                full = len(batch.parts) >= BLOCKS_AT_ONCE
                running = self._running = full and len(self._batches) < BATCHES_AHEAD
                self._turn.notify()

    def _inflated(self, limit: int) -> _Batch:
        """At most so many parts of the data that lie ready."""
        parts: list[bytes] = []
        try:
            while len(parts) < limit and not self._inflate.eof:
                packed = b""
                if self._inflate.needs_input:
                    if not self._pieces:
                        break
                    packed = self._pieces.popleft()
                part = self._inflate.decompress(packed, self._room)
                if part:
                    parts.append(part)
                    self._room = self._room - len(part) or self._block
        except Exception as error:  # IsalError, which has no type
            return _Batch(parts, error)
        return _Batch(parts, None)
