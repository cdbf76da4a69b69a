"""What a loader and a linker see of a library, to be compared with another."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from rocbase.errors import CheckError
from rocwheel.wheels.diff.model import Names, names
from rocwheel.wheels.elf import MOST_SECTIONS, MOST_SEGMENTS
from rocwheel.wheels.source import CHUNK

LARGEST_TABLE = 512 * 1024**2
"""Bytes of symbols or of their names."""

_SYMBOL = struct.Struct("<IBBHQQ")
_LISTS = {"DT_NEEDED": "needed"}
_WORDS = {"DT_SONAME": "soname", "DT_RUNPATH": "runpath", "DT_RPATH": "rpath"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfFacts:
    """Facts of one ELF file: words by name, sections as "SIZE bytes, HASH", and names by kind."""

    words: dict[str, str] = field(default_factory=dict)
    sections: dict[str, str] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)


def read_library(path: Path, subject: str) -> ElfFacts:
    """The facts of an ELF file; symbols of a 64-bit one. Raises CheckError where its tables are damaged."""
    try:
        with path.open("rb") as file:
            return _read(file, subject)
    except CheckError:
        raise
    except Exception as error:  # the parser meets damaged tables with errors of many kinds
        raise _wrong(subject, str(error) or type(error).__name__) from error


def compare_names(old: ElfFacts, new: ElfFacts) -> tuple[Names, ...]:
    """What the names in two libraries differ in."""
    kinds = [*old.names, *(kind for kind in new.names if kind not in old.names)]
    lists = (names(kind, old.names.get(kind, []), new.names.get(kind, [])) for kind in kinds)
    return tuple(difference for several in lists for difference in several)


def _read(file: BinaryIO, subject: str) -> ElfFacts:
    elf: Any = ELFFile(file)
    if elf.num_sections() > MOST_SECTIONS or elf.num_segments() > MOST_SEGMENTS:
        raise _wrong(subject, f"it claims {elf.num_sections():,} sections, {elf.num_segments():,} segments")
    facts = ElfFacts()
    facts.words["machine"] = f"{elf['e_machine']}, flags {elf['e_flags']:#x}"
    facts.words["segments"] = ", ".join(_segment(segment) for segment in elf.iter_segments())
    size = file.seek(0, 2)
    budget = 4 * size + 1024**2
    for section in elf.iter_sections():
        length = 0 if section["sh_type"] in ("SHT_NOBITS", "SHT_NULL") else section["sh_size"]
        budget -= length
        if section["sh_offset"] + length > size or budget < 0:
            raise _wrong(subject, "its sections overlap, or lie outside the file")
        if section.name:
            digest = _digest(file, section["sh_offset"], length)
            facts.sections[section.name] = f"{section['sh_size']:,} bytes, {digest}"
        if isinstance(section, DynamicSection):
            _dynamic(section, facts)
        elif isinstance(section, NoteSection) and section.name == ".note.gnu.build-id":
            facts.words["build id"] = " ".join(str(note["n_desc"]) for note in section.iter_notes())
        elif section["sh_type"] == "SHT_DYNSYM" and elf.elfclass == 64 and elf.little_endian:
            _symbols(section, elf.get_section(section["sh_link"]), facts, subject)
    return facts


def _segment(segment: Any) -> str:
    """Its kind and rights: LOAD RX, GNU_STACK RW."""
    rights = "".join(word for word, bit in (("R", 4), ("W", 2), ("X", 1)) if segment["p_flags"] & bit)
    return f"{str(segment['p_type']).removeprefix('PT_')} {rights}"


def _dynamic(section: Any, facts: ElfFacts) -> None:
    for tag in section.iter_tags():
        kind = tag.entry.d_tag
        if kind in _LISTS:
            facts.names.setdefault(_LISTS[kind], []).append(tag.needed)
        elif kind in _WORDS:
            facts.words[_WORDS[kind]] = getattr(tag, _WORDS[kind])


def _symbols(section: Any, strings: Any, facts: ElfFacts, subject: str) -> None:
    if max(section["sh_size"], strings["sh_size"]) > LARGEST_TABLE or section["sh_size"] % _SYMBOL.size:
        raise _wrong(subject, "its symbol table is damaged")
    text = strings.data()
    budget = LARGEST_TABLE
    for name, info, _, index, _, _ in _SYMBOL.iter_unpack(section.data()):
        end = text.find(b"\0", name)
        symbol = text[name : end if end >= 0 else None].decode(errors="replace")
        budget -= len(symbol)
        if budget < 0:
            raise _wrong(subject, "the names of its symbols overlap far too often")
        if symbol and info >> 4:  # 0: local
            kind = "symbols that it has" if index else "symbols that it wants"
            facts.names.setdefault(kind, []).append(symbol)


def _digest(file: BinaryIO, offset: int, length: int) -> str:
    digest = hashlib.sha256()
    file.seek(offset)
    while length > 0 and (piece := file.read(min(CHUNK, length))):
        digest.update(piece)
        length -= len(piece)
    return digest.hexdigest()[:12]


def _wrong(subject: str, reason: str) -> CheckError:
    return CheckError(
        f"not a valid ELF file: {reason}",
        cause="the file is truncated, damaged, or not the kind of file its name says",
        next_step="build the file again, or get a fresh copy",
        subject=subject,
    )
