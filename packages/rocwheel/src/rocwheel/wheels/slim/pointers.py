"""Every place of an x86-64 ELF file that holds an address within its fat binaries.

Sources: System V gABI ("Relocation", "Symbol Table", SHT_RELR), its supplement for x86-64 (relocation types),
and clang's CGCUDANV.cpp for the wrapper in `.hipFatBinSegment`: magic, version, pointer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from rocwheel.wheels.devicecode.fatbin import WRAPPER_MAGIC, WRAPPERS
from rocwheel.wheels.elf import MOST_RELOCATIONS, Elf, Section
from rocwheel.wheels.slim.cut import Span, cannot
from rocwheel.wheels.source import CHUNK

ET_EXEC = 2
"""e_type of a program at fixed addresses."""

_SHF_ALLOC = 2
_SHT_SYMTAB, _SHT_RELA, _SHT_DYNSYM, _SHT_RELR = 2, 4, 11, 19
_R_RELATIVE = 8
_RELA = struct.Struct("<QQq")
_SYMBOL = struct.Struct("<IBBHQQ")
_WORD = struct.Struct("<Q")
_WRAPPER = struct.Struct("<IIQQ")
_RELR_BITS = 63

MOST_FOUND = 100_000
"""Pointers, or symbols, that lead to code; a real library has some thousand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """8 bytes at `offset` of the file that hold the address `value`."""

    offset: int
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A symbol's value and size at `offset` of the file (8 bytes each); `loaded`: the loader knows it."""

    offset: int
    value: int
    size: int
    loaded: bool


Record = TypeVar("Record")


def pointers(file: Elf, regions: Sequence[Span]) -> Iterator[Pointer]:
    """What becomes an address of `regions` when the file is loaded.

    Raises CheckError for tables that are no such or name more than any real file.
    """
    tables = [section for section in file.sections if section.flags & _SHF_ALLOC]
    groups = [_relocated(file, table, regions) for table in tables if table.kind == _SHT_RELA]
    groups += [_relative(file, table, regions) for table in tables if table.kind == _SHT_RELR]
    if file.kind == ET_EXEC:
        groups.append(_absolute(file, regions))
    yield from _bounded(file, chain.from_iterable(groups))


def symbols(file: Elf, regions: Sequence[Span]) -> Iterator[Symbol]:
    """Symbols that stand for an address of `regions`. Raises as `pointers` does."""
    yield from _bounded(file, _symbols(file, regions))


def _symbols(file: Elf, regions: Sequence[Span]) -> Iterator[Symbol]:
    for section in file.sections:
        if section.kind not in (_SHT_SYMTAB, _SHT_DYNSYM):
            continue
        for offset, data in _tables(file, section, _SYMBOL.size):
            for row in _rows_within(memoryview(data).cast("Q")[1::3].tolist(), regions):
                _, _, _, index, value, size = _SYMBOL.unpack_from(data, row * _SYMBOL.size)
                if index:
                    loaded = section.kind == _SHT_DYNSYM
                    yield Symbol(
                        offset=offset + row * _SYMBOL.size + 8, value=value, size=size, loaded=loaded
                    )


def _relocated(file: Elf, section: Section, regions: Sequence[Span]) -> Iterator[Pointer]:
    for offset, data in _tables(file, section, _RELA.size):
        for row in _rows_within(memoryview(data).cast("Q")[2::3].tolist(), regions):
            place, info, addend = _RELA.unpack_from(data, row * _RELA.size)
            if info & 0xFFFFFFFF == _R_RELATIVE:
                yield Pointer(offset=offset + row * _RELA.size + 16, value=addend)
                # a linker may have written it to the place itself too
                yield from _word(file, place, addend.__eq__)


def _relative(file: Elf, section: Section, regions: Sequence[Span]) -> Iterator[Pointer]:
    def accept(value: int) -> bool:
        return _within(value, regions)

    position = count = 0
    for _, data in _tables(file, section, _WORD.size):
        for entry in memoryview(data).cast("Q"):
            if entry & 1 == 0:
                yield from _word(file, entry, accept)
                position = entry + _WORD.size
                continue
            count += entry.bit_count()
            if count > MOST_RELOCATIONS:
                raise cannot(file.source.subject, f"it claims more than {MOST_RELOCATIONS:,} relocations")
            for bit in range(_RELR_BITS):
                if entry >> (bit + 1) & 1:
                    yield from _word(file, position + _WORD.size * bit, accept)
            position += _RELR_BITS * _WORD.size


def _absolute(file: Elf, regions: Sequence[Span]) -> Iterator[Pointer]:
    for section in file.named(WRAPPERS):
        for offset, data in _tables(file, section, _WRAPPER.size):
            for row, (magic, _, value, _) in enumerate(_WRAPPER.iter_unpack(data)):
                if magic == WRAPPER_MAGIC and _within(value, regions):
                    yield Pointer(offset=offset + row * _WRAPPER.size + 8, value=value)


def _word(file: Elf, address: int, accept: Callable[[int], bool]) -> Iterator[Pointer]:
    offset = file.at_address(address)
    if offset is not None and offset + _WORD.size <= file.source.size:
        (value,) = _WORD.unpack(file.source.read_at(offset, _WORD.size))
        if accept(value):
            yield Pointer(offset=offset, value=value)


def _bounded(file: Elf, records: Iterable[Record]) -> Iterator[Record]:
    for number, record in enumerate(records):
        if number == MOST_FOUND:
            raise cannot(file.source.subject, f"more than {MOST_FOUND:,} pointers lead to it")
        yield record


def _tables(file: Elf, section: Section, row: int) -> Iterator[tuple[int, bytes]]:
    """A table's rows as bytes with their place in the file, about a MiB at a time."""
    if section.size > MOST_RELOCATIONS * row:
        raise cannot(file.source.subject, f"{section.name} has {section.size // row:,} rows")
    step = CHUNK // row * row
    for begin in range(0, section.size // row * row, step):
        offset = section.offset + begin
        yield offset, file.source.read_at(offset, min(step, section.size // row * row - begin))


def _rows_within(values: list[int], regions: Sequence[Span]) -> list[int]:
    """The numbers of the values that are addresses of `regions`."""
    return sorted(
        {row for begin, end in regions for row, address in enumerate(values) if begin <= address < end}
    )


def _within(value: int, regions: Sequence[Span]) -> bool:
    return any(begin <= value < end for begin, end in regions)
