"""A library of no code under another's second name: what it is asked for, that has.

A wheel holds no links, and a copy would be loaded beside the original, with a state of its own. A symbol that
is looked up in this library is looked up in what it needs too (dlsym(3)).
"""

from __future__ import annotations

import struct

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_TAG = struct.Struct("<QQ")
_ET_DYN, _VERSION = 3, 1
_PT_LOAD, _PT_DYNAMIC, _PT_GNU_STACK = 1, 2, 0x6474E551
_READ, _WRITE = 4, 2
_PAGE = 0x10000
_NULL, _NEEDED, _HASH, _STRTAB, _SYMTAB, _STRSZ, _SYMENT, _SONAME, _RPATH = 0, 1, 4, 5, 6, 10, 11, 14, 15
_SYMBOL_SIZE = 24


def alias_library(name: str, target: str, machine: int) -> bytes:
    """An ELF file whose SONAME is `name` and that needs `target`, found beside it; `machine` is e_machine.

    Source: System V ABI, "Dynamic Linking". Its hash table is one empty bucket, its only symbol the null one.
    """
    strings = b"\0" + name.encode() + b"\0" + target.encode() + b"\0$ORIGIN\0"
    at_needed = 2 + len(name.encode())
    at_rpath = at_needed + len(target.encode()) + 1
    begin = _HEADER.size + 3 * _PROGRAM.size
    symbols = begin
    hashes = symbols + _SYMBOL_SIZE
    table = struct.pack("<IIII", 1, 1, 0, 0)
    names = hashes + len(table)
    dynamic = -(-(names + len(strings)) // 16) * 16
    tags = (
        (_NEEDED, at_needed),
        (_SONAME, 1),
        (_RPATH, at_rpath),
        (_HASH, hashes),
        (_STRTAB, names),
        (_SYMTAB, symbols),
        (_STRSZ, len(strings)),
        (_SYMENT, _SYMBOL_SIZE),
        (_NULL, 0),
    )
    written = b"".join(_TAG.pack(*tag) for tag in tags)
    size = dynamic + len(written)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = _HEADER.pack(
        ident,
        _ET_DYN,
        machine,
        _VERSION,
        0,
        _HEADER.size,
        0,
        0,
        _HEADER.size,
        _PROGRAM.size,
        3,
        64,
        0,
        0,
    )
    # glibc relocates the dynamic section in place: it is writable
    programs = (
        _PROGRAM.pack(_PT_LOAD, _READ | _WRITE, 0, 0, 0, size, size, _PAGE),
        _PROGRAM.pack(_PT_DYNAMIC, _READ | _WRITE, dynamic, dynamic, dynamic, len(written), len(written), 8),
        _PROGRAM.pack(_PT_GNU_STACK, _READ | _WRITE, 0, 0, 0, 0, 0, 16),
    )
    body = header + b"".join(programs) + bytes(_SYMBOL_SIZE) + table + strings
    return body + bytes(dynamic - len(body)) + written
