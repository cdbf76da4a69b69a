"""One GPU code object in memory: its sections, its notes, and its symbols with the bytes that they name."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode.gpu import HEADER_SIZE, GpuHeader, gpu_header
from rocwheel.wheels.devicecode.notes import NOTES, notes
from rocwheel.wheels.elf import RELOCATABLE, Elf, Section
from rocwheel.wheels.source import MemorySource

MOST_SYMBOLS = 2_000_000
"""More than these is no code object that a compiler wrote."""

_SYMBOL = struct.Struct("<IBBHQQ")

_SYMBOL_TABLES, _WITHOUT_BYTES = (2, 11), (0, 8)
_ALLOCATED, _EXECUTABLE = 2, 4
_FUNCTION = 2
_LARGEST_SHARE = 8
"""How often a table of strings may be used over; two names share a tail at most here and there."""
_SPECIAL = 0xFF00
"""Indices from here on name no section."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Symbol:
    """A name for `size` bytes at `address`, which lies in the section with index `section`."""

    address: int
    size: int
    name: str
    function: bool
    section: int


class CodeFile:
    """A code object's header, sections and symbols.

    One that is not `linked` has places that a linker fills in, and cannot be loaded.

    Raises CheckError for what is no sound code object. Source of the layout: the ELF-64 object file format.
    """

    def __init__(self, code: bytes, subject: str) -> None:
        self._code = memoryview(code)
        self.subject = subject
        self.header: GpuHeader = gpu_header(code[:HEADER_SIZE], subject)
        self._elf = Elf(MemorySource(code, subject=subject))
        self.linked = self._elf.kind != RELOCATABLE
        self.sections = self._elf.sections
        if not self.sections:
            raise self.wrong("it has no section table")
        self.symbols = sorted(dict.fromkeys(self._read_symbols()))

    def content(self, section: Section) -> memoryview:
        """A section's bytes in the file; none for a kind that has none there."""
        if section.kind in _WITHOUT_BYTES:
            return self._code[:0]
        if section.offset + section.size > len(self._code):
            raise self.wrong(f"section {section.name[:100]} lies outside the file")
        return self._code[section.offset : section.offset + section.size]

    def bytes_of(self, symbol: Symbol, count: int) -> bytes:
        """The first `count` bytes that a symbol names."""
        section = self.sections[symbol.section]
        content, begin = self.content(section), symbol.address - section.address
        if begin < 0 or begin + count > len(content):
            raise self.wrong(f"symbol {symbol.name[:100]} lies outside its section")
        return bytes(content[begin : begin + count])

    def holds_code(self, section: Section) -> bool:
        """Whether a section is there to be run."""
        return bool(section.flags & _EXECUTABLE) and section.kind not in _WITHOUT_BYTES

    def is_loaded_as_shown(self, section: Section) -> bool:
        """Whether what the loader puts at a section's address is what the section shows.

        Disassemblers go by sections, the loader by segments; in a sound file they agree.
        """
        return bool(section.flags & _ALLOCATED) and any(
            segment.is_loaded
            and segment.address <= section.address
            and section.address + section.size <= segment.address + segment.file_size
            and section.offset - segment.offset == section.address - segment.address
            for segment in self._elf.segments
        )

    def notes(self) -> Iterator[tuple[bytes, int, memoryview]]:
        """Owner, type and content of each note."""
        for section in self.sections:
            if section.kind != NOTES:
                continue
            for note in notes(self.content(section)):
                if not note.complete:
                    raise self.wrong("a note is truncated")
                yield note.owner.rstrip(b"\0"), note.kind, note.content

    def wrong(self, reason: str) -> CheckError:
        """The error to raise for a file that is not what it should be."""
        return CheckError(
            f"not a valid code object: {reason}",
            cause="the file is truncated, damaged, or written by a compiler that rocwheel does not know",
            next_step="build the file again, or get a fresh copy",
            subject=self.subject,
        )

    def _read_symbols(self) -> Iterator[Symbol]:
        remaining = MOST_SYMBOLS
        for table in self.sections:
            if table.kind not in _SYMBOL_TABLES:
                continue
            if table.link >= len(self.sections) or table.size % _SYMBOL.size:
                raise self.wrong("a symbol table is damaged")
            remaining -= table.size // _SYMBOL.size
            if remaining < 0:
                raise self.wrong(f"it claims more than {MOST_SYMBOLS:,} symbols")
            strings = _Strings(self.content(self.sections[table.link]), self)
            for name, info, _visibility, section, value, size in _SYMBOL.iter_unpack(self.content(table)):
                if 0 < section < min(len(self.sections), _SPECIAL):
                    yield Symbol(
                        address=value,
                        size=size,
                        name=strings.text(name),
                        function=info & 15 == _FUNCTION,
                        section=section,
                    )


class _Strings:
    """A table of strings, and a bound for what is taken: a million names may claim the same long string."""

    def __init__(self, content: memoryview, file: CodeFile) -> None:
        self._content = bytes(content)
        self._file = file
        self._remaining = _LARGEST_SHARE * len(content) + MOST_SYMBOLS

    def text(self, offset: int) -> str:
        end = self._content.find(b"\0", offset)
        name = self._content[offset : end if end >= 0 else None]
        self._remaining -= len(name)
        if self._remaining < 0:
            raise self._file.wrong("its names overlap far too often")
        return name.decode(errors="replace")
