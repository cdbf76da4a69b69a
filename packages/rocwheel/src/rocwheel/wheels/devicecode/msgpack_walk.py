"""MessagePack read piece by piece: nothing is built but what is asked for, however much the data claim.

A list or map is entered by its size; what stands where a number or text is expected must be one. So memory is
bounded by what the reader keeps, where unpacking all of it takes a hundred times the bytes of the data.
Source of the format: https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

Value = TypeVar("Value")


class MalformedError(ValueError):
    """The data are not what they should be; the text says how."""


class Walk:
    """MessagePack data from their beginning on; texts are at most `longest` bytes."""

    def __init__(self, data: bytes, longest: int) -> None:
        import msgpack  # most files can do without

        self._data = data
        self._errors = ValueError, msgpack.UnpackException
        self._unpacker = msgpack.Unpacker(
            raw=False,
            max_buffer_size=max(1, len(data)),
            max_str_len=longest,
            max_bin_len=0,
            max_ext_len=0,
            # only headers of lists and maps are read
            max_array_len=0,
            max_map_len=0,
        )
        self._unpacker.feed(data)
        self._unpack = self._unpacker.unpack

    def map(self, label: str, limit: int) -> Iterator[str]:
        """The keys of a map, one after another; read or skip the value of each before the next."""
        count = self._checked(label, self._unpacker.read_map_header)
        self._check_count(label, count, limit, least_bytes=2)
        keys = set()
        for _ in range(count):
            key = self.text(f"a key of {label}")
            if key in keys:
                raise MalformedError(f"{label} has {key[:100]!r} twice")
            keys.add(key)
            yield key

    def list(self, label: str, limit: int) -> range:
        """A list's numbers; read an item for each."""
        count = self._checked(label, self._unpacker.read_array_header)
        self._check_count(label, count, limit, least_bytes=1)
        return range(count)

    def text(self, label: str) -> str:
        """A text without characters that cannot be printed."""
        text = self._scalar(label)
        if not isinstance(text, str) or not text.isprintable():
            raise MalformedError(f"{label} is not a printable text")
        return text

    def count(self, label: str) -> int:
        """A number that is not negative."""
        number = self._scalar(label)
        if type(number) is not int or number < 0:
            raise MalformedError(f"{label} is not a count")
        return number

    def skip(self, label: str) -> None:
        """Pass over a value of any kind."""
        self._checked(label, self._unpacker.skip)

    @property
    def position(self) -> int:
        """How many bytes have been read."""
        return int(self._unpacker.tell())

    def _scalar(self, label: str) -> object:
        try:
            return self._unpack()
        except self._errors as error:
            begin = self._data[self.position : self.position + 1]
            # lists and maps: 0x80 to 0x9f, 0xdc to 0xdf
            if b"\x80" <= begin <= b"\x9f" or b"\xdc" <= begin <= b"\xdf":
                raise MalformedError(f"{label} is a list or map") from error
            raise _unreadable(label, error) from error

    def _checked(self, label: str, take: Callable[[], Value]) -> Value:
        try:
            return take()
        except self._errors as error:
            raise _unreadable(label, error) from error

    def _check_count(self, label: str, count: int, limit: int, *, least_bytes: int) -> None:
        if count > limit or count * least_bytes > len(self._data) - self.position:
            raise MalformedError(f"{label} claims {count:,} items")


def _unreadable(label: str, error: Exception) -> MalformedError:
    reason = str(error)[:100] or "the data end early"  # msgpack.OutOfData has no text
    return MalformedError(f"{label} cannot be read: {reason}")
