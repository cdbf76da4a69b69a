"""A nameless file for what does not belong into memory; it goes when it is closed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rocwright.wheels.parts import Part
from rocwright.wheels.source import Budget, Source


class Scratch(Source):
    """Bytes are put behind one another, and read from anywhere. `folder` says on which file system."""

    def __init__(self, descriptor: int, folder: Path) -> None:
        super().__init__(0, Budget.for_file(0, "a temporary file"), "a temporary file")
        self._descriptor = descriptor
        self.folder = folder

    def put(self, pieces: Iterable[bytes]) -> Part:
        """Keep these bytes; what comes back stands for them."""
        begin = self.size
        for piece in pieces:
            left = memoryview(piece)
            while left:
                count = os.pwrite(self._descriptor, left, self.size)
                self.size += count
                left = left[count:]
        self.budget.grant(self.size - begin)
        return Part(self, begin, self.size - begin)

    def forget(self) -> None:
        """Give back the room of all that was put; no part of it may be read again."""
        os.ftruncate(self._descriptor, 0)
        self.size = 0

    def _get(self, offset: int, count: int) -> bytes:
        return os.pread(self._descriptor, count, offset)


@contextmanager
def scratch(folder: Path) -> Iterator[Scratch]:
    """A scratch file on the file system of `folder`, where there must be room for the result too."""
    with tempfile.TemporaryFile(dir=folder) as file:
        yield Scratch(file.fileno(), folder)
