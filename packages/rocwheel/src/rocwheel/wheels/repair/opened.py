"""The names of libraries in a library's read-only data: those that it can open by name."""

from __future__ import annotations

import re
from pathlib import Path

from rocwheel.wheels.elf import Elf
from rocwheel.wheels.source import FileSource

_SECTIONS = (".rodata", ".rodata.str1.1", ".data.rel.ro")
_NAME = re.compile(rb"(?<![\w./%+-])(lib[A-Za-z0-9_+-]{1,100}\.so(?:\.[0-9]{1,10}){0,4})\0")
_LONGEST = 256


def names_in(path: Path) -> tuple[str, ...]:
    """Whole strings in an ELF file's constants that look like a library's file name, in order, once each.

    What is made from parts at run time is not seen. Raises CheckError where the tables cannot be read.
    """
    elf = Elf(FileSource(path))
    names: dict[str, None] = {}
    for section in (section for name in _SECTIONS for section in elf.named(name)):
        buffer = b""
        for piece in elf.source.chunks(section.offset, section.size):
            buffer += piece
            names |= dict.fromkeys(match[1].decode() for match in _NAME.finditer(buffer))
            buffer = buffer[-_LONGEST:]
    return tuple(names)
