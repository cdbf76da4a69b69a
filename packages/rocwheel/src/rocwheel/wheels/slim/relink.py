"""An ELF file whose fat binaries became smaller: moved together, pointers to them set, free pages cut out."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rocwheel.wheels.elf import HEADER_SIZE, Elf, Section
from rocwheel.wheels.parts import BytePart, Joined, bytes_part, replaced, without
from rocwheel.wheels.slim.cut import PAGE, SEGMENT, Cut, Span, cannot, cut, offset_of
from rocwheel.wheels.slim.place import Moving, Region, end_of, filled, hole, together
from rocwheel.wheels.slim.pointers import ET_EXEC, Symbol, pointers, symbols
from rocwheel.wheels.source import ByteSource, MemorySource

DEBUG = (".debug_", ".zdebug_", ".gdb_index", ".rela.debug_")
"""Beginnings of the names of sections that only debuggers read (DWARF 5, section 7.4; GDB's index)."""

_EM_X86_64, _ET_DYN, _PT_INTERP, _SHF_ALLOC = 62, 3, 3, 2
_SECTION_SIZE, _OFFSET_IN_SECTION = 64, 24
MOST_REGIONS = 64
"""Sections of fat binaries in one file; nearly every library has one."""

_ROW_ALIGNMENT = 8
_ALIGNMENT = 16
"""What goes behind all segments is a multiple of it, so that tables stay aligned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """A bundle at `offset` of the file, and what stands in its place."""

    offset: int
    content: ByteSource


@dataclass(frozen=True, slots=True)
class _Moved:
    """A section of fat binaries: what lies at which address, and bundles with their new by their old one."""

    region: Region
    filling: dict[int, ByteSource]
    bundles: Mapping[int, tuple[Renewed, int]]


def debug_sections(file: Elf) -> list[Section]:
    """The sections that a debugger alone needs."""
    return [
        section
        for section in file.sections
        if section.name.startswith(DEBUG) and section.has_bytes and not section.flags & _SHF_ALLOC
    ]


def relinked(
    file: Elf,
    bundles: Mapping[int, Sequence[Renewed]],
    dropped: Sequence[Section],
    *,
    instead: ByteSource | None = None,
) -> Joined:
    """The file with new bundles in its sections (by number), and without the sections `dropped`.

    With `instead`, each section holds that alone, and all that pointed to a bundle points to it.

    Raises CheckError where something points into the middle of a bundle, where what is new does not fit, and
    for a kind of file that rocwright cannot change.
    """
    subject = file.source.subject
    if len(bundles) > MOST_REGIONS:
        raise cannot(subject, f"it lies in {len(bundles):,} sections")
    if file.machine != _EM_X86_64 or file.kind not in (ET_EXEC, _ET_DYN):
        raise cannot(subject, "it is not a program or library for x86-64")
    _check_segments(file)
    moved, edits = _move(file, bundles, instead)
    sizes = {index: end_of(move.region, move.filling) - move.region.begin for index, move in moved.items()}
    table_at, holes = _plan(file, list(moved.values()))
    trimmed = cut(
        file,
        holes=holes,
        sections=[
            replace(section, size=sizes[section.index]) if section.index in moved else section
            for section in file.sections
            if section not in dropped
        ],
        also=_spans(file, dropped),
        table_at=table_at,
    )
    table = b"".join(SEGMENT.pack(*segment) for segment in trimmed.segments)
    header, sections_at, rows = _tables(file, trimmed, table_at)
    edits |= {0: header, sections_at: rows}
    if table_at is None:
        edits[int.from_bytes(header[32:40], "little")] = table
    changes: dict[int, Sequence[BytePart]] = {
        offset: [bytes_part(data)] for offset, data in edits.items() if data
    }
    for index, move in moved.items():
        if table_at in move.filling:
            move.filling[table_at] = MemorySource(table)
        changes[file.sections[index].offset] = filled(move.region, move.filling)
    return without(replaced(file.source, changes), trimmed.removed.spans)


def _check_segments(file: Elf) -> None:
    """Raise CheckError where a segment claims more than the file, or any memory, has."""
    for segment in file.segments:
        past_end = segment.offset + segment.file_size > file.source.size
        wraps = (
            segment.is_loaded
            and not segment.address + segment.file_size <= segment.address + segment.memory_size < 1 << 64
        )
        if past_end or wraps:
            raise file.wrong(f"a segment at {segment.address:#x} claims more bytes than the file has")


def _move(
    file: Elf, bundles: Mapping[int, Sequence[Renewed]], instead: ByteSource | None
) -> tuple[dict[int, _Moved], dict[int, bytes]]:
    """The sections with their bundles moved together, and every pointer and symbol that must change."""
    regions = {index: _region(file, file.sections[index]) for index in bundles}
    spans = [(region.begin, region.end) for region in regions.values()]
    references = list(pointers(file, spans)) if spans else []
    pointed = {pointer.value for pointer in references}
    moved = {}
    new: dict[int, tuple[Renewed, int]] = {}
    for index, region in regions.items():
        shift = region.begin - file.sections[index].offset
        moving = [
            Moving(
                address=bundle.offset + shift,
                content=bundle.content,
                fixed=bundle.offset + shift not in pointed,
            )
            for bundle in bundles[index]
        ]
        if instead is not None:
            filling = {region.begin: instead}
            rows = {old.address: (Renewed(offset=0, content=instead), region.begin) for old in moving}
        else:
            filling = together(region, moving, file.source.subject)
            rows = {
                old.address: (bundle, address)
                for old, bundle, address in zip(moving, bundles[index], filling, strict=True)
            }
        moved[index] = _Moved(region, filling, rows)
        new |= rows
    edits = {}
    for pointer in references:
        if pointer.value not in new:
            raise cannot(
                file.source.subject, f"something points to {pointer.value:#x}, where no bundle begins"
            )
        edits[pointer.offset] = struct.pack("<Q", new[pointer.value][1])
    olds = sorted(new)
    for symbol in symbols(file, spans):
        edits[symbol.offset] = struct.pack("<QQ", *_renamed(symbol, new, olds, file.source.subject))
    return moved, edits


def _renamed(
    symbol: Symbol, new: Mapping[int, tuple[Renewed, int]], olds: Sequence[int], subject: str
) -> tuple[int, int]:
    """Value and size of a symbol once its bundle has moved."""
    if symbol.value in new:
        bundle, address = new[symbol.value]
        return address, min(symbol.size, bundle.content.size)
    if symbol.loaded:
        raise cannot(subject, f"a symbol stands for {symbol.value:#x}, where no bundle begins")
    # A debugger's word for a place in a bundle, where something else lies now.
    return new[olds[max(0, bisect_right(olds, symbol.value) - 1)]][1], 0


def _region(file: Elf, section: Section) -> Region:
    end = section.address + section.size
    for segment in file.segments:
        if (
            segment.is_loaded
            and segment.address <= section.address
            and end <= segment.address + segment.file_size
            and section.address - segment.address == section.offset - segment.offset
        ):
            last = end == segment.address + segment.file_size == segment.address + segment.memory_size
            return Region(begin=section.address, end=end, last=last)
    raise cannot(file.source.subject, f"no segment loads the section {section.name}")


def _plan(file: Elf, moved: Sequence[_Moved]) -> tuple[int | None, list[Span]]:
    """The address of the program headers, if segments that become two add to them, and the pages that go."""
    spans = [hole(move.region, end_of(move.region, move.filling)) for move in moved]
    middle = sum(span is not None and not move.region.last for move, span in zip(moved, spans, strict=True))
    if not middle:
        return None, [span for span in spans if span]
    size = (len(file.segments) + middle) * SEGMENT.size
    number, table_at = _room(file, moved, spans, size)
    spans[number] = hole(moved[number].region, table_at + size)
    if spans[number] or middle > 1:
        moved[number].filling[table_at] = MemorySource(bytes(size))
        return table_at, [span for span in spans if span]
    return None, [span for span in spans if span]  # the headers alone would take the room


def _room(file: Elf, moved: Sequence[_Moved], spans: Sequence[Span | None], size: int) -> tuple[int, int]:
    """The section behind whose bundles there is room for the program headers, and the address.

    A kernel before Linux 5.18 takes a program's headers to lie as far behind its first segment in memory as
    in the file (fs/binfmt_elf.c, AT_PHDR), so for a program they must.
    """
    runs = file.kind == ET_EXEC or any(segment.kind == _PT_INTERP for segment in file.segments)
    first = next(segment for segment in file.segments if segment.is_loaded)
    subject = file.source.subject
    for number, move in enumerate(moved):
        begin = move.region.begin
        same_shift = begin - offset_of(file.segments, begin, subject) == first.address - first.offset
        address = end_of(move.region, move.filling)
        address += -address % _ROW_ALIGNMENT
        if spans[number] and (same_shift or not runs) and address + size <= move.region.end:
            return number, address
    raise cannot(subject, "there is no room for the program headers that it would need")


def _tables(file: Elf, trimmed: Cut, table_at: int | None) -> tuple[bytes, int, bytes]:
    """The file's header; where the section headers lie now, and what they are to be."""
    subject = file.source.subject
    header = bytearray(file.source.read_at(0, HEADER_SIZE))
    segments_at, sections_at = struct.unpack_from("<QQ", header, 32)
    if table_at is not None:
        segments_at = offset_of(trimmed.segments, table_at, subject)
    struct.pack_into("<QQ", header, 32, segments_at, trimmed.removed.moved(sections_at))
    struct.pack_into("<H", header, 56, len(trimmed.segments))
    rows = bytearray(file.source.read_at(sections_at, len(file.sections) * _SECTION_SIZE))
    sections = {section.index: section for section in trimmed.sections}
    for index in range(len(file.sections)):
        start = index * _SECTION_SIZE
        if index in sections:
            struct.pack_into(
                "<QQ", rows, start + _OFFSET_IN_SECTION, sections[index].offset, sections[index].size
            )
        else:
            rows[start : start + _SECTION_SIZE] = bytes(_SECTION_SIZE)
    return bytes(header), sections_at, bytes(rows)


def _spans(file: Elf, dropped: Sequence[Section]) -> list[Span]:
    """The bytes of these sections that can go; neighbours go together."""
    spans: list[Span] = []
    for begin, end in sorted((section.offset, section.offset + section.size) for section in dropped):
        if spans and 0 <= begin - spans[-1][1] < _ALIGNMENT:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((begin, end))
    removable = []
    for begin, end in spans:
        behind = any(
            segment.is_loaded and segment.offset + segment.file_size > begin for segment in file.segments
        )
        unit = PAGE if behind else _ALIGNMENT
        removable.append((begin, begin + (end - begin) // unit * unit))
    return removable
