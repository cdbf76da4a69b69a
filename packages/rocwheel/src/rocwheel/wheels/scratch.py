"""A place for bytes that are needed again: in memory up to a bound, behind that in a nameless file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rocwheel.wheels.parts import BytePart
from rocwheel.wheels.source import Budget, ByteSource

MIB = 1024 * 1024


class Scratch(ByteSource):
    """Bytes are put behind one another, and read from anywhere; `folder` is where the file lies, if any."""

    def __init__(self, file: BinaryIO, folder: Path, in_memory: int) -> None:
        super().__init__(0, Budget.for_file(0, "a temporary file"), "a temporary file")
        self._descriptor = file.fileno()
        self._memory = bytearray()
        self._most = in_memory
        self.folder = folder

    def put(self, pieces: Iterable[bytes]) -> BytePart:
        """Keep these bytes; what comes back stands for them."""
        begin = self.size
        for piece in pieces:
            if self.size == len(self._memory) and self.size + len(piece) <= self._most:
                self._memory += piece
                self.size += len(piece)
                continue
            remaining = memoryview(piece)
            while remaining:
                count = os.pwrite(self._descriptor, remaining, self.size - len(self._memory))
                self.size += count
                remaining = remaining[count:]
        self.budget.grant(self.size - begin)
        return BytePart(self, begin, self.size - begin)

    def forget(self) -> None:
        """Give back the room of all that was put; no part of it may be read again."""
        os.ftruncate(self._descriptor, 0)
        self._memory = bytearray()
        self.size = 0

    def _get(self, offset: int, count: int) -> bytes:
        in_memory = len(self._memory)
        data = bytes(memoryview(self._memory)[offset : offset + count])
        while len(data) < count:
            piece = os.pread(self._descriptor, count - len(data), offset + len(data) - in_memory)
            if not piece:
                break
            data += piece
        return data


@contextmanager
def scratch(folder: Path, in_memory: int = 16 * MIB) -> Iterator[Scratch]:
    """A scratch whose file, if it needs one, is on the file system of `folder`."""
    with tempfile.TemporaryFile(dir=folder) as file:
        yield Scratch(file, folder, in_memory)
