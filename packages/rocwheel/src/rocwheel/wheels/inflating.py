"""Deflated data inflated block by block; of large ones the next blocks in a thread beside the caller.

isal lets other threads run while it inflates. The thread does nothing else: it reads no file and shares
nothing that the caller changes meanwhile, and it ends by itself after a few blocks.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator

from isal import igzip_lib

BLOCKS_AHEAD = 4
"""What is inflated before it is asked for, at most."""

BEGINNING = 8
"""Blocks that are inflated only when they are asked for: of many files no more is wanted than these."""


class Inflating:
    """What raw deflated data inflate to, `size` bytes at a time."""

    def __init__(self, packed: Iterator[bytes], size: int) -> None:
        self._packed = packed
        self._block = size
        self._inflate = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE)
        self._ready: deque[bytes] = deque()
        self._size = 0
        self._coming: _Step | None = None
        self._failed: Exception | None = None
        self._exhausted = False
        self._over = False

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
            if self._over:
                return b""
            self._fill()
        return self._ready.popleft()

    def _fill(self) -> None:
        step = self._coming or self._next(1)
        step.finish()
        self._ready += step.parts
        self._size += sum(map(len, step.parts))
        self._failed = step.failed
        self._over = bool(self._inflate.eof) or (self._exhausted and not step.parts)
        self._coming = None
        if self._size >= BEGINNING * self._block and not self._over and self._failed is None:
            self._coming = self._next(BLOCKS_AHEAD)
            self._coming.begin()

    def _next(self, most: int) -> _Step:
        packed = b""
        if self._inflate.needs_input:
            packed = next(self._packed, b"")
            self._exhausted = not packed
        return _Step(self._inflate, packed, self._block, self._size, most)


class _Step:
    """At most so many more blocks behind `done` bytes; `failed` is why there are not more of them."""

    def __init__(
        self, inflate: igzip_lib.IgzipDecompressor, packed: bytes, block: int, done: int, most: int
    ) -> None:
        self.parts: list[bytes] = []
        self.failed: Exception | None = None
        self._inflate = inflate
        self._packed = packed
        self._block = block
        self._room = block - done % block
        self._most = most
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Do it in a thread beside, where the system allows one more."""
        thread = threading.Thread(target=self._run)
        try:
            thread.start()
        except RuntimeError:
            return
        self._thread = thread

    def finish(self) -> None:
        """Do it now, or wait for the thread."""
        if self._thread is None:
            self._run()
        else:
            self._thread.join()

    def _run(self) -> None:
        packed, room = self._packed, self._room
        try:
            while len(self.parts) < self._most and not self._inflate.eof:
                part = self._inflate.decompress(packed, room)
                if part:
                    self.parts.append(part)
                if len(part) < room:
                    return
                packed, room = b"", self._block
        except Exception as error:  # IsalError, which has no type
            self.failed = error
