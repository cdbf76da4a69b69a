"""The first bytes of a file of a stranger, read in order and within bounds: no length in it is trusted."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

from rocwright.serving.models.refused import cut_short, damaged

CHUNK = 1024 * 1024


class Cursor:
    """Reads numbers and texts one after another, up to byte `most` of the file; holds no more than one."""

    def __init__(self, path: Path, file: BinaryIO, length: int, limit: int) -> None:
        self.path, self.length, self.at = path, length, 0
        self._file, self._most = file, limit

    @property
    def left(self) -> int:
        """Bytes of the file that are not read yet."""
        return self.length - self.at

    def bytes(self, count: int, label: str) -> bytes:
        """The next bytes. Raises CheckError where the file ends before, or the head is too long."""
        self.need(count, label)
        data = self._file.read(count)
        if len(data) < count:  # it was made shorter while it was read
            raise cut_short(self.path, count - len(data), label)
        self.at += count
        return data

    def number(self, form: str, label: str) -> Any:
        """The next number, in one of struct's forms, little-endian."""
        return struct.unpack("<" + form, self.bytes(struct.calcsize("<" + form), label))[0]

    def text(self, length: int, limit: int, label: str) -> str:
        """The next text; one that is longer than `limit` bytes cannot be."""
        if length > limit:
            raise damaged(self.path, f"{label} says that it is {length:,} bytes long")
        return self.bytes(length, label).decode("utf-8", "replace")

    def skip(self, count: int, label: str) -> None:
        """Go on by so many bytes."""
        self.need(count, label)
        self.at += count
        self._file.seek(self.at)

    def skip_texts(self, count: int, label: str) -> None:
        """Go on over texts that have their lengths in eight bytes before them."""
        unpack = struct.Struct("<Q").unpack_from
        while count:
            self.need(8, label)
            data, position = self._file.read(CHUNK), 0
            while count and position + 8 <= len(data):
                position += 8 + unpack(data, position)[0]
                count -= 1
            self.skip(max(position, 8), label)

    def need(self, count: int, label: str) -> None:
        """Raise CheckError if so many bytes more are not there, or are too many."""
        end = self.at + count
        if end > self.length:
            raise cut_short(self.path, end - self.length, label)
        if end > self._most:
            raise damaged(self.path, f"{label} makes its head longer than {self._most:,} bytes")
