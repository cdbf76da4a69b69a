"""The first bytes of a file of a stranger, read in order and within bounds: no length in it is trusted."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

from rocwright.serving.models.refused import cut_short, damaged

CHUNK = 1024 * 1024


class Cursor:
    """Reads numbers and texts one after another; at most `most` bytes of the file are ever read."""

    def __init__(self, path: Path, file: BinaryIO, length: int, most: int) -> None:
        self.path, self.length, self.at = path, length, 0
        self._file, self._most = file, most
        self._data = b""

    @property
    def left(self) -> int:
        """Bytes of the file that are not read yet."""
        return self.length - self.at

    def bytes(self, count: int, what: str) -> bytes:
        """The next bytes. Raises CheckError where the file ends before, or the head is too long."""
        self.need(count, what)
        found = self._data[self.at : self.at + count]
        self.at += count
        return found

    def number(self, form: str, what: str) -> Any:
        """The next number, in one of struct's forms, little-endian."""
        return struct.unpack("<" + form, self.bytes(struct.calcsize("<" + form), what))[0]

    def text(self, length: int, most: int, what: str) -> str:
        """The next text; one that is longer than `most` bytes cannot be."""
        if length > most:
            raise damaged(self.path, f"{what} says that it is {length:,} bytes long")
        return self.bytes(length, what).decode("utf-8", "replace")

    def skip(self, count: int, what: str) -> None:
        """Go on by so many bytes."""
        self.need(count, what)
        self.at += count

    def skip_texts(self, count: int, what: str) -> None:
        """Go on over texts that have their lengths in eight bytes before them."""
        unpack = struct.Struct("<Q").unpack_from
        at, have = self.at, len(self._data)
        for _ in range(count):
            if at + 8 > have:
                self.at = at
                self.need(8, what)
                have = len(self._data)
            at += 8 + unpack(self._data, at)[0]
        self.at = min(at, have)
        self.need(at - self.at, what)
        self.at = at

    def need(self, count: int, what: str) -> None:
        """Have so many bytes more at hand."""
        wanted = self.at + count
        if wanted <= len(self._data):
            return
        if wanted > self.length:
            raise cut_short(self.path, wanted - self.length, what)
        if wanted > self._most:
            raise damaged(self.path, f"{what} makes its head longer than {self._most:,} bytes")
        more = max(wanted, min(2 * len(self._data) + CHUNK, self.length, self._most)) - len(self._data)
        self._data += self._file.read(more)
        if wanted > len(self._data):  # it was made shorter while it was read
            raise cut_short(self.path, wanted - len(self._data), what)
