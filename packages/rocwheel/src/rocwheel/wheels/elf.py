"""ELF files of hosts: sections, segments, the dynamic section, relocations; read in bounded memory.

Only what a HIP runtime loads is read: 64-bit, little-endian. Source of the layout: System V gABI chapters 4
and 5, and its section on SHT_RELR; relocations of x86-64: its psABI, table 4.9.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from rocbase.errors import CheckError
from rocwheel.wheels.source import CHUNK, ByteSource

MAGIC = b"\x7fELF"
MAGIC_64 = MAGIC + b"\x02\x01"
"""How a 64-bit little-endian one begins."""

HEADER_SIZE = 64
MOST_SECTIONS = 200_000
MOST_SEGMENTS = 256
MOST_RELOCATIONS = 1 << 24
MOST_DYNAMIC = 100_000
MOST_NAMES = 64 * 1024 * 1024
MOST_NAMES_SHARED = 4
"""How often the bytes of a table of names may be used over: a name may be the end of another."""

FRONT, BACK, DATA = 12 * 1024 * 1024, 4 * 1024 * 1024, 1024 * 1024
"""Bytes of the beginning, of the end of what is loaded, and of where data begin that the program may change:
what is read of a library mostly lies there."""

RELOCATABLE = 1
"""e_type of an object file, whose addresses are offsets into sections."""

_HEADER = struct.Struct("<4sBBBBB7xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_RELA = struct.Struct("<QQq")
_SYMBOL = struct.Struct("<IBBHQQ")
_CLASS64, _LITTLE = 2, 1
_SHN_UNDEF, _SHN_LORESERVE, _SHN_XINDEX = 0, 0xFF00, 0xFFFF
_PT_LOAD, _PT_DYNAMIC, _PF_W = 1, 2, 2
_SHT_SYMTAB, _SHT_RELA, _SHT_NOBITS, _SHT_DYNSYM, _SHT_RELR = 2, 4, 8, 11, 19
_SHF_COMPRESSED = 0x800

# Relocations whose result is an address, by e_machine: (with a symbol, without one).
_ADDRESSES = {62: (1, 8), 183: (257, 1027)}


@dataclass(frozen=True, slots=True)
class Section:
    """One row of the section table, in the order of its fields; `offset` and `size` in bytes of the file."""

    index: int
    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int

    @property
    def has_bytes(self) -> bool:
        return self.kind != _SHT_NOBITS


class Segment(NamedTuple):
    """One row of the program header table, in the order of its fields."""

    kind: int
    flags: int
    offset: int
    address: int
    physical_address: int
    file_size: int
    memory_size: int
    alignment: int

    @property
    def is_loaded(self) -> bool:
        return self.kind == _PT_LOAD


class Pointer(NamedTuple):
    """An address that the loader or linker puts into 8 bytes of the file.

    `at` is where those lie in the file, `target` the place in the file that they will point to; None where
    that is not in this file. `form` says what holds the value, and `value_at` where in the file: the addend
    of a relocation ("rela"; of a symbol: "symbol"), or the 8 bytes themselves ("relr", "place").
    `value` is what lies at `value_at`.
    """

    at: int
    target: int | None
    form: Literal["rela", "symbol", "relr", "place"]
    value_at: int
    value: int


class Elf:
    """An ELF file in `source`. Raises CheckError for tables that are no such, or lie outside the file."""

    def __init__(self, source: ByteSource) -> None:
        self.source = source
        self._relocations_left = MOST_RELOCATIONS
        self._dynamic_known: dict[int, str] = {}
        self._dynamic_read = 0
        if source.size < HEADER_SIZE:
            raise self.wrong("it is shorter than an ELF header")
        fields = _HEADER.unpack(source.read_at(0, HEADER_SIZE))
        (magic, bits, order, _, self.abi, _, self.kind, self.machine, _, self.entry, *tables) = fields
        if magic != MAGIC:
            raise self.wrong("it does not start with the ELF magic number")
        if (bits, order) != (_CLASS64, _LITTLE):
            raise self.wrong("it is not 64-bit and little-endian")
        (self._segments_at, self._sections_at, self.flags, _, self._segment_size, self._segment_count) = (
            tables[:6]
        )
        self._section_size, self._section_count, self._names_index = tables[6:]

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The section table in its order; empty where there is none."""
        if self._sections_at == 0:
            return ()
        self._expect()
        if self._section_size != _SECTION.size:
            raise self.wrong(f"its sections are described in {self._section_size} bytes each")
        first = _SECTION.unpack(self._read(self._sections_at, _SECTION.size, "section table"))
        count = self._section_count or first[5]
        names_index = first[6] if self._names_index == _SHN_XINDEX else self._names_index
        if count > MOST_SECTIONS:
            raise self.wrong(f"it claims {count:,} sections")
        table = self._read(self._sections_at, count * _SECTION.size, "section table")
        rows = list(_SECTION.iter_unpack(table))
        if names_index >= count:
            raise self.wrong("its table of section names does not exist")
        names_at, names_size = rows[names_index][4:6]
        if names_size > MOST_NAMES:
            raise self.wrong(f"its section names claim {names_size:,} bytes")
        table = self._read(names_at, names_size, "section names")
        names: dict[int, str] = {}
        remaining = MOST_NAMES_SHARED * names_size
        for offset, *_ in rows:
            if offset not in names:
                names[offset] = self._string(table, offset)
                remaining -= len(names[offset])
                if remaining < 0:
                    raise self.wrong("its section names overlap")
        return tuple(Section(index, names[offset], *row) for index, (offset, *row) in enumerate(rows))

    def _expect(self) -> None:
        """Say what will be read once the section table is known, which lies at the end of most files."""
        if self.kind == RELOCATABLE:
            return
        try:
            loaded = max((segment.offset + segment.file_size for segment in self._loaded), default=0)
        except CheckError:
            return  # whoever needs the segments hears of it
        # relocations lie at the beginning; the wrappers of bundles at the end of what is loaded, or among the
        # first data, with all bundles behind them
        data = [(segment.offset, segment.offset + DATA) for segment in self._loaded if segment.flags & _PF_W]
        self.source.expect([(0, FRONT), *data, (max(0, loaded - BACK), loaded)], loaded)

    def named(self, name: str) -> list[Section]:
        """The sections called `name` that have bytes in the file, which are all inside it, in their order."""
        sections = [section for section in self.sections if section.name == name and section.has_bytes]
        for section in sections:
            if section.offset + section.size > self.source.size:
                end = section.offset + section.size
                raise self.wrong(f"section {name} ends at byte {end:,}, the file at {self.source.size:,}")
            if section.flags & _SHF_COMPRESSED:
                raise self.wrong(f"section {name} is compressed as a whole, which no HIP runtime reads")
        return sections

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The program header table in its order; empty where there is none."""
        if self._segment_count == 0:
            return ()
        if self._segment_size != _SEGMENT.size or self._segment_count > MOST_SEGMENTS:
            raise self.wrong("its segment table cannot be read")
        table = self._read(self._segments_at, self._segment_count * _SEGMENT.size, "segment table")
        return tuple(Segment(*row) for row in _SEGMENT.iter_unpack(table))

    @cached_property
    def dynamic(self) -> tuple[tuple[int, int], ...]:
        """Tags and values of the dynamic section, in their order, without the end mark."""
        entries = []
        for segment in self.segments:
            if segment.kind != _PT_DYNAMIC:
                continue
            count = min(segment.file_size // 16, MOST_DYNAMIC)
            for tag, value in struct.iter_unpack(
                "<qQ", self._read(segment.offset, count * 16, "dynamic section")
            ):
                if tag == 0:
                    break
                entries.append((tag, value))
        return tuple(entries)

    def dynamic_strings(self, tag: int) -> list[str]:
        """The strings that a tag of the dynamic section names (needed libraries are 1, DT_NEEDED)."""
        return [self.dynamic_string(value) for key, value in self.dynamic if key == tag]

    def dynamic_string(self, offset: int) -> str:
        """The string at an offset into the dynamic section's strings, as long as that table lets it be."""
        if offset not in self._dynamic_known:
            self._dynamic_known[offset] = self._string(self._dynamic_names, offset)
            self._dynamic_read += len(self._dynamic_known[offset])
            if self._dynamic_read > MOST_NAMES_SHARED * len(self._dynamic_names):
                raise self.wrong("its dynamic strings overlap")
        return self._dynamic_known[offset]

    @cached_property
    def _dynamic_names(self) -> bytes:
        tables = {tag: value for tag, value in self.dynamic if tag in (5, 10)}  # DT_STRTAB, DT_STRSZ
        begin = self.at_address(tables.get(5, 0))
        if begin is None or tables.get(10, 0) > MOST_NAMES:
            raise self.wrong("its dynamic string table lies outside the file")
        return self._read(begin, tables.get(10, 0), "dynamic strings")

    def at_address(self, address: int) -> int | None:
        """Where in the file the byte lies that is loaded at an address; None where none is."""
        for segment in self._loaded:
            if segment.address <= address < segment.address + segment.file_size:
                return segment.offset + address - segment.address
        return None

    @cached_property
    def _loaded(self) -> tuple[Segment, ...]:
        return tuple(segment for segment in self.segments if segment.is_loaded)

    def pointers(self, section: Section) -> list[Pointer]:
        """The addresses that are put into a section when the file is linked or loaded, by where they lie.

        Raises CheckError where there are more of them than the section has room for.
        """
        with_symbol, relative = _ADDRESSES.get(self.machine, (None, None))
        pointers: dict[int, Pointer] = {}
        for table in self._relocation_tables:
            if table.kind == _SHT_RELR and self.kind != RELOCATABLE:
                for address in self._relr(table, section):
                    position = section.offset + address - section.address
                    (value,) = struct.unpack("<Q", self._read(position, 8, section.name))
                    target = self.at_address(value)
                    pointers[position] = Pointer(
                        at=position, target=target, form="relr", value_at=position, value=value
                    )
            if table.kind != _SHT_RELA or (self.kind == RELOCATABLE and table.info != section.index):
                continue
            base = 0 if self.kind == RELOCATABLE else section.address
            for row_at, (address, info, addend) in self._rela(table, base, section.size):
                position = section.offset + address - base
                kind, symbol = info & 0xFFFFFFFF, info >> 32
                if kind == relative:
                    target = self.at_address(addend)
                    form: Literal["rela", "symbol"] = "rela"
                elif kind == with_symbol:
                    target = self._symbol_target(table.link, symbol, addend)
                    form = "symbol"
                else:
                    continue
                pointers[position] = Pointer(
                    at=position, target=target, form=form, value_at=row_at + 16, value=addend
                )
        return [pointers[position] for position in sorted(pointers)]

    @cached_property
    def _relocation_tables(self) -> tuple[Section, ...]:
        return tuple(section for section in self.sections if section.kind in (_SHT_RELA, _SHT_RELR))

    def _rela(self, table: Section, base: int, size: int) -> Iterator[tuple[int, tuple[int, int, int]]]:
        """The rows of a table that change bytes `base` to `base + size`, each with its place in the file."""
        count = table.size // _RELA.size
        self._check_count(count)
        room = size // 8
        step = CHUNK // _RELA.size
        for first in range(0, count, step):
            rows = min(step, count - first)
            offset = table.offset + first * _RELA.size
            data = self._read(offset, rows * _RELA.size, "relocation table")
            addresses = memoryview(data).cast("Q")[::3].tolist()
            for row, address in enumerate(addresses):
                if base <= address < base + size:
                    room = self._one_less(room)
                    yield offset + row * _RELA.size, _RELA.unpack_from(data, row * _RELA.size)

    def _relr(self, table: Section, section: Section) -> Iterator[int]:
        """Addresses inside `section` that a table of packed relative relocations names."""
        count = table.size // 8
        self._check_count(count)
        begin, end, room = section.address, section.address + section.size, section.size // 8
        base = 0
        for data in self.source.chunks(table.offset, count * 8) if count else ():
            for word in memoryview(data).cast("Q"):
                if word & 1 == 0:
                    if begin <= word < end:
                        room = self._one_less(room)
                        yield word
                    base = word + 8
                    continue
                # a bit for each of the 63 words from `base` on; those before and behind the section go
                skipped = max(0, (begin - base + 7) // 8)
                bits = ((word >> (1 + skipped)) << skipped) if skipped < 63 and base < end else 0
                while bits:
                    address = base + 8 * ((bits & -bits).bit_length() - 1)
                    if address >= end:
                        break
                    room = self._one_less(room)
                    yield address
                    bits &= bits - 1
                base += 63 * 8

    def _one_less(self, room: int) -> int:
        if room == 0:
            raise self.wrong("a section has more pointers than fit into it")
        return room - 1

    def _check_count(self, count: int) -> None:
        self._relocations_left -= count + 1
        if self._relocations_left < 0:
            raise self.wrong(f"it claims more than {MOST_RELOCATIONS:,} relocations")

    def _symbol_target(self, table_index: int, symbol: int, addend: int) -> int | None:
        """Where in the file a symbol and addend point to; None where that is in no section of it."""
        if table_index >= len(self.sections):
            raise self.wrong("a relocation table has no symbol table")
        table = self.sections[table_index]
        if table.kind not in (_SHT_SYMTAB, _SHT_DYNSYM) or (symbol + 1) * _SYMBOL.size > table.size:
            raise self.wrong("a relocation refers to a symbol that does not exist")
        row = self._read(table.offset + symbol * _SYMBOL.size, _SYMBOL.size, "symbol table")
        _, _, _, index, value, _ = _SYMBOL.unpack(row)
        if index == _SHN_UNDEF or index >= min(_SHN_LORESERVE, len(self.sections)):
            return None
        if self.kind != RELOCATABLE:
            return self.at_address(value + addend)
        section = self.sections[index]
        return section.offset + value + addend if section.has_bytes else None

    def _read(self, offset: int, count: int, label: str) -> bytes:
        if offset + count > self.source.size:
            raise self.wrong(f"its {label} ends at byte {offset + count:,}, the file at {self.source.size:,}")
        return self.source.read_at(offset, count)

    def _string(self, table: bytes, offset: int) -> str:
        end = table.find(b"\0", offset)
        if offset >= len(table) or end < 0:
            raise self.wrong("a name is not terminated")
        return table[offset:end].decode("utf-8", errors="replace")

    def wrong(self, reason: str) -> CheckError:
        """The error for what is no sound ELF file."""
        return CheckError(
            f"not a valid ELF file: {reason}",
            cause="the file is truncated, damaged, or not the kind of file its name says",
            next_step="build the file again, or get a fresh copy",
            subject=self.source.subject,
        )
