"""A small code object with one kernel, written byte by byte: what readers of kernels begin with."""

from __future__ import annotations

import struct

import msgpack

ADDRESS = 0x1000
SECTION = struct.Struct("<IIQQQQIIQQ")

NOTE, PROGBITS, STRTAB, DYNSYM = 7, 1, 3, 11
ALLOC, EXECUTE = 2, 4


def metadata(name: str = "k") -> bytes:
    """The note's content, as the compiler packs it."""
    kernel = {
        ".name": name,
        ".symbol": f"{name}.kd",
        ".kernarg_segment_size": 8,
        ".group_segment_fixed_size": 0,
        ".private_segment_fixed_size": 0,
        ".wavefront_size": 32,
        ".sgpr_count": 4,
        ".vgpr_count": 3,
        ".max_flat_workgroup_size": 256,
        ".args": [{".offset": 0, ".size": 8, ".value_kind": "global_buffer"}],
    }
    return bytes(msgpack.packb({"amdhsa.version": [1, 2], "amdhsa.kernels": [kernel]}))


def code_object(flags: int = 0x41, told: bytes | None = None) -> bytes:
    """One kernel `k` of a single s_endpgm, loaded 4 KiB behind where it lies in the file."""
    content = metadata() if told is None else told
    padded = content + bytes(-len(content) % 4)
    note = struct.pack("<III", 7, len(content), 32) + b"AMDGPU\0\0" + padded
    strings = b"\0k\0k.kd\0"
    text = struct.pack("<I", 0xBFB00000)
    parts = [note, bytes(72), strings, bytes(64), text]
    offsets, at = [], 120
    for part in parts:
        at += -at % 64
        offsets.append(at)
        at += len(part)
    descriptor = struct.pack("<III4xq20xIIIHH4x", 0, 0, 8, offsets[4] - offsets[3], 0, 0, 0, 1 << 10, 0)
    symbols = bytes(24) + b"".join(
        struct.pack("<IBBHQQ", name, 0x10 | kind, 3, section, ADDRESS + offset, size)
        for name, kind, section, offset, size in ((1, 2, 5, offsets[4], 4), (3, 1, 4, offsets[3], 64))
    )
    parts[1], parts[3] = symbols, descriptor
    body = bytearray(at)
    for offset, part in zip(offsets, parts, strict=True):
        body[offset : offset + len(part)] = part
    names = b"\0.note\0.dynsym\0.dynstr\0.rodata\0.text\0.shstrtab\0"
    kinds = ((NOTE, ALLOC, 0), (DYNSYM, ALLOC, 3), (STRTAB, ALLOC, 0), (PROGBITS, ALLOC, 0))
    rows = [*kinds, (PROGBITS, ALLOC | EXECUTE, 0)]
    table = bytes(64) + b"".join(
        SECTION.pack(names.index(name), kind, flag, ADDRESS + offset, offset, len(part), link, 0, 4, 24)
        for name, (kind, flag, link), offset, part in zip(
            (b".note", b".dynsym", b".dynstr", b".rodata", b".text"), rows, offsets, parts, strict=True
        )
    )
    table += SECTION.pack(names.index(b".shstrtab"), STRTAB, 0, 0, at, len(names), 0, 0, 1, 0)
    ident = b"\x7fELF" + bytes([2, 1, 1, 64, 2]) + bytes(7)
    header = ident + struct.pack(
        "<HHIQQQIHHHHHH", 3, 224, 1, 0, 64, at + len(names), flags, 64, 56, 1, 64, 7, 6
    )
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, ADDRESS, ADDRESS, at, at, 4096)
    return header + segment + bytes(body[120:]) + names + table
