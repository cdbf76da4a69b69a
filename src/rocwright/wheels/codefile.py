"""One GPU code object in memory: its sections, its notes, and its symbols with the bytes that they name."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from rocwright.errors import CheckError
from rocwright.wheels.gpu import HEADER_SIZE, GpuHeader, gpu_header

MOST_SECTIONS = 100_000
MOST_SYMBOLS = 2_000_000
"""More than these is no code object that a compiler wrote."""

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NOTE = struct.Struct("<III")
_SEGMENT = struct.Struct("<IIQQQQQQ")

_LINKED = 3
_LOAD = 1
_NOTES, _SYMBOL_TABLES, _WITHOUT_BYTES = 7, (2, 11), (0, 8)
_ALLOCATED, _EXECUTABLE = 2, 4
_FUNCTION, _OBJECT = 2, 1
_LARGEST_SHARE = 8
"""How often a table of strings may be used over; two names share a tail at most here and there."""
_SPECIAL = 0xFF00
"""Indices from here on name no section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the file: where it lies in it and at which address it is loaded, in bytes."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int

    @property
    def executable(self) -> bool:
        return bool(self.flags & _EXECUTABLE) and self.kind not in _WITHOUT_BYTES

    @property
    def loaded(self) -> bool:
        return bool(self.flags & _ALLOCATED)

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + self.size


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Symbol:
    """A name for `size` bytes at `address`, which lies in the section with index `section`."""

    address: int
    size: int
    name: str
    function: bool
    object: bool
    section: int


class CodeFile:
    """A code object's header, sections and symbols. All of it is checked to lie in the file.

    One that is not `linked` has places that a linker fills in, and cannot be loaded.

    Raises CheckError for what is no sound code object. Source of the layout: the ELF-64 object file format.
    """

    def __init__(self, code: bytes, subject: str) -> None:
        self._code = memoryview(code)
        self.subject = subject
        self.header: GpuHeader = gpu_header(code[:HEADER_SIZE], subject)
        self.linked = code[16:18] == _LINKED.to_bytes(2, "little")
        self.sections = self._read_sections()
        self._segments = self._read_segments()
        self.symbols = sorted(dict.fromkeys(self._read_symbols()))

    def content(self, section: Section) -> memoryview:
        """A section's bytes in the file; none for a kind that has none there."""
        if section.kind in _WITHOUT_BYTES:
            return self._code[:0]
        return self._code[section.offset : section.offset + section.size]

    def bytes_of(self, symbol: Symbol, count: int) -> bytes:
        """The first `count` bytes that a symbol names."""
        section = self.sections[symbol.section]
        content, begin = self.content(section), symbol.address - section.address
        if begin < 0 or begin + count > len(content):
            raise self.wrong(f"symbol {symbol.name[:100]} lies outside its section")
        return bytes(content[begin : begin + count])

    def is_loaded_as_shown(self, section: Section) -> bool:
        """Whether what the loader puts at a section's address is what the section shows.

        Disassemblers go by sections, the loader by segments; in a sound file they agree.
        """
        return any(
            begin <= section.address
            and section.end <= begin + size
            and section.offset - offset == section.address - begin
            for offset, begin, size in self._segments
        )

    def notes(self) -> Iterator[tuple[bytes, int, memoryview]]:
        """Owner, type and content of each note."""
        for section in self.sections:
            if section.kind != _NOTES:
                continue
            left = self.content(section)
            while len(left) >= _NOTE.size:
                name_size, size, kind = _NOTE.unpack_from(left)
                begin = _NOTE.size + _padded(name_size)
                if begin + size > len(left):
                    raise self.wrong("a note is cut short")
                owner = bytes(left[_NOTE.size : _NOTE.size + name_size]).rstrip(b"\0")
                yield owner, kind, left[begin : begin + size]
                left = left[begin + _padded(size) :]

    def wrong(self, why: str) -> CheckError:
        """The error to raise for a file that is not what it should be."""
        return CheckError(
            f"not a sound code object: {why}",
            cause="the file is cut short, damaged, or written by a compiler that rocwright does not know",
            next_step="build it or get it again",
            subject=self.subject,
        )

    def _read_segments(self) -> tuple[tuple[int, int, int], ...]:
        """Offset in the file, address and size in the file of what is loaded."""
        table, entry, count = struct.unpack_from("<32xQ14xHH", self._code)
        if count and (entry != _SEGMENT.size or table + count * entry > len(self._code)):
            raise self.wrong("its segment table lies outside the file")
        raw = _SEGMENT.iter_unpack(self._code[table : table + count * _SEGMENT.size])
        return tuple(
            (offset, address, size) for kind, _, offset, address, _, size, *_ in raw if kind == _LOAD
        )

    def _read_sections(self) -> tuple[Section, ...]:
        table, entry, count, names = struct.unpack_from("<40xQ10xHHH", self._code)
        size = _SECTION.size
        if not table:
            raise self.wrong("it has no section table")
        if entry != size or table + size > len(self._code):
            raise self.wrong("its section table lies outside the file")
        # A count of 0 stands for one too large for the header: it lies in the first section.
        first = _SECTION.unpack_from(self._code, table)
        count, names = count or first[5], first[6] if names == 0xFFFF else names
        if count > MOST_SECTIONS or table + count * size > len(self._code):
            raise self.wrong(f"it claims {count:,} sections")
        raw = list(_SECTION.iter_unpack(self._code[table : table + count * size]))
        if names >= count:
            raise self.wrong("the names of its sections are missing")
        if raw[names][4] + raw[names][5] > len(self._code):
            raise self.wrong("the names of its sections lie outside the file")
        strings = _Strings(self._code[raw[names][4] : raw[names][4] + raw[names][5]], self)
        return tuple(self._section(one, strings) for one in raw)

    def _section(self, raw: tuple[int, ...], strings: _Strings) -> Section:
        name, kind, flags, address, offset, size, link = raw[:7]
        if kind not in _WITHOUT_BYTES and offset + size > len(self._code):
            raise self.wrong(f"a section ends at byte {offset + size:,}, the file at {len(self._code):,}")
        return Section(
            name=strings.at(name),
            kind=kind,
            flags=flags,
            address=address,
            offset=offset,
            size=size,
            link=link,
        )

    def _read_symbols(self) -> Iterator[Symbol]:
        left = MOST_SYMBOLS
        for table in self.sections:
            if table.kind not in _SYMBOL_TABLES:
                continue
            if table.link >= len(self.sections) or table.size % _SYMBOL.size:
                raise self.wrong("a symbol table is damaged")
            left -= table.size // _SYMBOL.size
            if left < 0:
                raise self.wrong(f"it claims more than {MOST_SYMBOLS:,} symbols")
            strings = _Strings(self.content(self.sections[table.link]), self)
            for name, info, _other, section, value, size in _SYMBOL.iter_unpack(self.content(table)):
                if 0 < section < min(len(self.sections), _SPECIAL):
                    yield Symbol(
                        address=value,
                        size=size,
                        name=strings.at(name),
                        function=info & 15 == _FUNCTION,
                        object=info & 15 == _OBJECT,
                        section=section,
                    )


class _Strings:
    """A table of strings, and a bound for what is taken: a million names may claim the same long string."""

    def __init__(self, content: memoryview, file: CodeFile) -> None:
        self._content = bytes(content)
        self._file = file
        self._left = _LARGEST_SHARE * len(content) + MOST_SYMBOLS

    def at(self, offset: int) -> str:
        end = self._content.find(b"\0", offset)
        found = self._content[offset : end if end >= 0 else None]
        self._left -= len(found)
        if self._left < 0:
            raise self._file.wrong("its names overlap without end")
        return found.decode(errors="replace")


def _padded(size: int) -> int:
    return -(-size // 4) * 4
