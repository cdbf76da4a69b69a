"""A small writer of kpack archives and of libraries that refer to them, apart from rocwheel's own."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import msgpack
import zstandard

from rocwheel_samples.fatbin import gpu_elf

SEARCH = "../.kpack/x_@GFXARCH@.kpack"
FLAGS = {"gfx803": 0x2A, "gfx1030": 0x36, "gfx1100": 0x41, "gfx1151": 0x4A}


def kpack(
    code: Mapping[tuple[str, str], bytes],
    *,
    scheme: str = "zstd-per-kernel",
    version: int = 1,
    changed: Mapping[str, Any] | None = None,
    table_at: int | None = None,
    table: bytes | None = None,
) -> bytes:
    """An archive of code objects by the name of their library and their target.

    `changed` replaces entries of the table (None: leaves them out), `table` all of it.
    """
    toc: dict[str, dict[str, Any]] = {}
    blobs, body = [], b""
    for number, ((name, target), content) in enumerate(code.items()):
        row = {"type": "hsaco", "ordinal": number, "original_size": len(content)}
        toc.setdefault(name, {})[target] = row
        blobs.append({"offset": 64 + len(body), "size": len(content)})
        frame = zstandard.compress(content)
        body += content if scheme == "none" else struct.pack("<I", len(frame)) + frame
    if scheme != "none":
        body = struct.pack("<I", len(code)) + body
    told = {
        "format_version": 1,
        "group_name": "x",
        "gfx_arches": sorted({target for _, target in code}),
        "compression_scheme": scheme,
        "toc": toc,
        **({"blobs": blobs} if scheme == "none" else {"zstd_offset": 64, "zstd_size": len(body)}),
        **(changed or {}),
    }
    packed = msgpack.packb({key: value for key, value in told.items() if value is not None})
    end = 64 + len(body)
    header = struct.pack("<4sIQ", b"KPAK", version, end if table_at is None else table_at)
    return header.ljust(64, b"\0") + body + (packed if table is None else table)


def code_for(target: str, *names: str) -> dict[tuple[str, str], bytes]:
    """Code of libraries for one target, as `kpack` takes it; features of the target are not in its header."""
    return {(name, target): gpu_elf(FLAGS[target], body=name.encode()) for name in names}


def reference(name: str, search: Sequence[str] = (SEARCH,)) -> bytes:
    """The bytes of .rocm_kpack_ref."""
    packed: bytes = msgpack.packb({"kpack_search_paths": list(search), "kernel_name": name})
    return packed


def wrappers(numbers: Sequence[int], address: int, magic: int = 0x4B504948) -> bytes:
    """The bytes of .hipFatBinSegment, for code objects of these numbers."""
    return b"".join(struct.pack("<IIQQ", magic, 1, address, number) for number in numbers)


def kpacked_elf(
    name: str = "lib/x.so",
    search: Sequence[str] = (SEARCH,),
    *,
    wanted: int = 1,
    told: bytes | None = None,
    magic: int = 0x4B504948,
    base: int = 0x10000,
) -> bytes:
    """A library as AMD's splitter leaves it: wrappers of kpack, the reference, .hip_fatbin without bytes.

    `told` is what stands for the reference; with b"" there is no section of it.
    """
    content = bytearray(120)
    sections: list[tuple[bytes, int, int, int, int]] = [(b".hip_fatbin", 8, 0x1000, len(content), 0x4000)]

    def put(name: bytes, data: bytes) -> int:
        content.extend(bytes(-len(content) % 16))
        begin = len(content)
        content.extend(data)
        sections.append((name, 1, base + begin, begin, len(data)))
        return base + begin

    ref = reference(name, search) if told is None else told
    at = put(b".rocm_kpack_ref" if ref else b".other", ref or reference(name, search))
    put(b".hipFatBinSegment", wrappers(range(wanted), at, magic))
    strings = b"\0" + b"\0".join(one for one, *_ in sections) + b"\0.shstrtab\0"
    names_at = len(content)
    content.extend(strings)
    table_at = len(content)
    section = struct.Struct("<IIQQQQIIQQ")
    content.extend(bytes(64))
    for one, kind, address, begin, size in sections:
        content.extend(section.pack(strings.index(one), kind, 2, address, begin, size, 0, 0, 16, 0))
    content.extend(section.pack(strings.index(b".shstrtab"), 3, 0, 0, names_at, len(strings), 0, 0, 1, 0))
    size = len(content)
    content[64:120] = struct.pack("<IIQQQQQQ", 1, 6, 0, base, base, size, size, 4096)
    ident = b"\x7fELF" + bytes([2, 1, 1, 0, 0]) + bytes(7)
    count = len(sections) + 2
    content[:64] = ident + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, table_at, 0, 64, 56, 1, 64, count, count - 1
    )
    return bytes(content)
