"""A small writer of what rocwright.wheels reads: GPU and host ELF files, offload bundles, wheels."""

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
