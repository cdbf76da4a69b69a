"""The notes of an ELF section, where a code object says what its header has no room for."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

NOTES = 7
"""The type of a section of notes (SHT_NOTE)."""

_NOTE = struct.Struct("<III")


class Note(NamedTuple):
    """Owner (with its zeros) and type of a note, and as much of its content as is there; is it `complete`?"""

    owner: bytes
    kind: int
    content: memoryview
    complete: bool


def notes(section: memoryview) -> Iterator[Note]:
    """Each note in a section's bytes. Source: the ELF-64 object file format, "Note Section"."""
    remaining = section
    while len(remaining) >= _NOTE.size:
        name_size, size, kind = _NOTE.unpack_from(remaining)
        begin = _NOTE.size + _padded(name_size)
        owner = bytes(remaining[_NOTE.size : _NOTE.size + name_size])
        yield Note(owner, kind, remaining[begin : begin + size], complete=begin + size <= len(remaining))
        remaining = remaining[begin + _padded(size) :]


def _padded(size: int) -> int:
    return -(-size // 4) * 4
