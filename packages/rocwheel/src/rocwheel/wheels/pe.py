"""PE files of Windows (DLLs, programs): sections and addresses, read in bounded memory.

Section names have 8 bytes at most, so that `.hip_fatbin` is `.hip_fat` there and `.hipFatBinSegment`
`.hipFatB`. Pointers lie in the file as addresses from the preferred base on. Source: Microsoft's "PE Format";
clang's lib/CodeGen/CGCUDANV.cpp for the names.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from rocbase.errors import CheckError
from rocwheel.wheels.formats import PE_MAGIC
from rocwheel.wheels.source import ByteSource

MOST_SECTIONS = 96
"""More than these the loader of Windows does not take."""

_DOS_SIZE, _SIGNATURE_AT = 64, 0x3C
_COFF = struct.Struct("<4sHHIIIHH")
_SECTION = struct.Struct("<8sIIIIIIHHI")
_PE32_PLUS = 0x20B
_BASE_AT = 24


class Section(NamedTuple):
    """One row of the section table; `address` counts from the base, `offset` and `size` in the file."""

    name: str
    address: int
    offset: int
    size: int


class Pe:
    """A 64-bit PE file in `source`. Raises CheckError for tables that are no such, or lie outside."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        head = source.read_at(0, min(_DOS_SIZE, source.size))
        if len(head) < _DOS_SIZE or not head.startswith(PE_MAGIC):
            raise self.wrong("it does not start with the PE magic number")
        start = int.from_bytes(head[_SIGNATURE_AT:], "little")
        signature, self.machine, count, _, _, _, optional_size, _ = _COFF.unpack(
            self._read(start, _COFF.size)
        )
        if signature != b"PE\0\0":
            raise self.wrong("its header has no signature")
        if count > MOST_SECTIONS:
            raise self.wrong(f"it claims {count:,} sections")
        optional = self._read(start + _COFF.size, optional_size)
        if len(optional) < _BASE_AT + 8 or int.from_bytes(optional[:2], "little") != _PE32_PLUS:
            raise self.wrong("it is not 64-bit")
        self.base = int.from_bytes(optional[_BASE_AT : _BASE_AT + 8], "little")
        table = self._read(start + _COFF.size + optional_size, count * _SECTION.size)
        self.sections = tuple(
            Section(
                name=name.rstrip(b"\0").decode("latin-1"),
                address=address,
                offset=offset,
                # what lies in the file is padded to the file's alignment
                size=min(memory_size, size) if memory_size else size,
            )
            for name, memory_size, address, size, offset, *_ in _SECTION.iter_unpack(table)
        )

    def named(self, name: str) -> list[Section]:
        """The sections of that name (its first 8 bytes count), which are all inside the file."""
        sections = [section for section in self.sections if section.name == name[:8] and section.size]
        for section in sections:
            if section.offset + section.size > self.source.size:
                end = section.offset + section.size
                raise self.wrong(
                    f"section {section.name} ends at byte {end:,}, the file at {self.source.size:,}"
                )
        return sections

    def at_address(self, address: int) -> int | None:
        """Where in the file the byte lies that is loaded at an address, base included; None where none is."""
        for section in self.sections:
            if 0 <= address - self.base - section.address < section.size:
                return section.offset + address - self.base - section.address
        return None

    def _read(self, offset: int, count: int) -> bytes:
        if offset + count > self.source.size:
            raise self.wrong(f"its header ends at byte {offset + count:,}, the file at {self.source.size:,}")
        return self.source.read_at(offset, count)

    def wrong(self, reason: str) -> CheckError:
        """The error for what is no sound PE file."""
        return CheckError(
            f"not a valid PE file: {reason}",
            cause="the file is truncated, damaged, or not the kind of file its name says",
            next_step="build the file again, or get a fresh copy",
            subject=self.source.subject,
        )


def is_pe(source: ByteSource) -> bool:
    """Whether a file is a 64-bit PE file: much else begins with MZ, and holds no GPU code."""
    if source.size < _DOS_SIZE or not source.read_at(0, 2).startswith(PE_MAGIC):
        return False
    start = int.from_bytes(source.read_at(_SIGNATURE_AT, 4), "little")
    size = _COFF.size + 2
    if start + size > source.size:
        return False
    head = source.read_at(start, size)
    return head.startswith(b"PE\0\0") and head[-2:] == _PE32_PLUS.to_bytes(2, "little")
