"""A small writer of what rocwheel.wheels reads: GPU and host ELF files, offload bundles, wheels."""

from __future__ import annotations

import hashlib
import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import zstandard

ALIGNMENT = 4096


def gpu_elf(flags: int, *, body: bytes = b"code", abi: int = 2, machine: int = 224, osabi: int = 64) -> bytes:
    """A 64-bit little-endian ELF header with these e_flags, and a body that no reader looks into."""
    ident = b"\x7fELF" + bytes([2, 1, 1, osabi, abi]) + bytes(7)
    return ident + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, flags, 64, 56, 0, 64, 0, 0) + body


def plain_bundle(entries: Sequence[tuple[str, bytes]], *, align: int = ALIGNMENT) -> bytes:
    """`__CLANG_OFFLOAD_BUNDLE__` with the host's empty entry first, as clang writes it."""
    named = [("host-x86_64-unknown-linux-gnu-", b""), *entries]
    header_size = 32 + sum(24 + len(name) for name, _ in named)
    header = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(named))
    body = b""
    for name, content in named:
        begin = header_size + len(body)
        body += bytes(-begin % align)
        header += struct.pack("<QQQ", header_size + len(body), len(content), len(name)) + name.encode()
        body += content
    return header + body


def compressed_bundle(content: bytes, *, version: int, method: int) -> bytes:
    packed = zlib.compress(content) if method == 0 else zstandard.compress(content)
    md5 = int.from_bytes(hashlib.md5(content, usedforsecurity=False).digest()[:8], "little")
    layout = {1: "<4sHHIQ", 2: "<4sHHIIQ", 3: "<4sHHQQQ"}[version]
    sizes = [] if version == 1 else [struct.calcsize(layout) + len(packed)]
    return struct.pack(layout, b"CCOB", version, method, *sizes, len(content), md5) + packed


def fatbin(bundles: Sequence[bytes]) -> bytes:
    """Bundles one after another, each on a page of its own, as the linker lays them out."""
    return b"".join(one + bytes(-len(one) % ALIGNMENT) for one in bundles)


def host_elf(fatbin: bytes, *, name: bytes = b".hip_fatbin", kind: int = 1, flags: int = 2) -> bytes:
    """An x86-64 ELF file with a null section, the section `name`, and the section names."""
    names = b"\0" + name + b"\0.shstrtab\0"
    names_at = 64 + len(fatbin)
    table_at = names_at + len(names)
    ident = b"\x7fELF" + bytes([2, 1, 1, 0, 0]) + bytes(7)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, table_at, 0, 64, 56, 0, 64, 3, 2)
    section = struct.Struct("<IIQQQQIIQQ")
    return (
        header
        + fatbin
        + names
        + bytes(64)
        + section.pack(1, kind, flags, 0, 64, len(fatbin), 0, 0, 4096, 0)
        + section.pack(2 + len(name), 3, 0, 0, names_at, len(names), 0, 0, 1, 0)
    )


def linked_elf(bundles: Sequence[bytes], *, form: str = "rela", base: int = 0x10000) -> bytes:
    """A shared x86-64 library: bundles, a wrapper for each, and what makes the wrappers' pointers.

    `form` is "rela" or "relr" (relocations of the dynamic linker), or "place" (a program at fixed addresses).
    The whole file is one segment at `base`.
    """
    content = bytearray(64 + 56)
    sections: list[tuple[bytes, int, int, int]] = []

    def put(name: bytes, kind: int, data: bytes) -> int:
        content.extend(bytes(-len(content) % 16))
        begin = len(content)
        content.extend(data)
        sections.append((name, kind, begin, len(data)))
        return begin

    first = put(b".hip_fatbin", 1, fatbin(bundles))
    places = [first + sum(len(fatbin([one])) for one in bundles[:number]) for number in range(len(bundles))]
    targets = [base + place for place in places]
    held = [0 if form == "rela" else target for target in targets]
    wrappers = b"".join(struct.pack("<IIQQ", 0x48495046, 1, one, 0) for one in held)
    wrappers_at = put(b".hipFatBinSegment", 1, wrappers)
    slots = [base + wrappers_at + 24 * number + 8 for number in range(len(held))]
    if form == "rela":
        rows = (struct.pack("<QQq", slot, 8, target) for slot, target in zip(slots, targets, strict=True))
        put(b".rela.dyn", 4, b"".join(rows))
    elif form == "relr":
        # the first address, then one bit for each 8 bytes behind it
        bits = sum(1 << (slot - slots[0]) // 8 for slot in slots[1:])
        put(b".relr.dyn", 19, struct.pack("<QQ", slots[0], bits | 1))
    strings = b"\0" + b"\0".join(name for name, *_ in sections) + b"\0.shstrtab\0"
    put(b".shstrtab", 3, strings)
    table_at = len(content)
    section = struct.Struct("<IIQQQQIIQQ")
    content.extend(bytes(64))
    for name, kind, begin, size in sections:
        content.extend(section.pack(strings.index(name), kind, 2, base + begin, begin, size, 0, 0, 16, 0))
    content[64:120] = struct.pack("<IIQQQQQQ", 1, 6, 0, base, base, len(content), len(content), 4096)
    ident = b"\x7fELF" + bytes([2, 1, 1, 0, 0]) + bytes(7)
    kind = 2 if form == "place" else 3
    count = len(sections) + 1
    content[:64] = ident + struct.pack(
        "<HHIQQQIHHHHHH", kind, 62, 1, 0, 64, table_at, 0, 64, 56, 1, 64, count, count - 1
    )
    return bytes(content)


def pe_file(sections: Mapping[bytes, bytes], *, base: int = 0x180000000, magic: int = 0x20B) -> bytes:
    """A PE file with these sections, each 4 KiB of address space and 512 bytes of file behind the last."""
    optional = struct.pack("<H22xQ", magic, base) + bytes(208)
    head = b"MZ" + bytes(58) + struct.pack("<I", 64)
    head += struct.pack("<4sHHIIIHH", b"PE\0\0", 0x8664, len(sections), 0, 0, 0, len(optional), 0x2022)
    table, body = b"", b""
    begin = -(-(len(head) + len(optional) + 40 * len(sections)) // 512) * 512
    for number, (name, content) in enumerate(sections.items(), 1):
        raw = content + bytes(-len(content) % 512)
        place = (len(content), number * 0x1000, len(raw), begin + len(body))
        table += struct.pack("<8sIIIIIIHHI", name, *place, 0, 0, 0, 0, 0x40000040)
        body += raw
    return (head + optional + table).ljust(begin, b"\0") + body


def entry_id(target: str) -> str:
    return f"hipv4-amdgcn-amd-amdhsa--{target}"


def write_wheel(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def write_archive(path: Path, files: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path
