"""The fat binaries of a library: its bundles, and the wrappers through which the program finds them.

The compiler puts bundles into the section `.hip_fatbin`, and for each a wrapper into `.hipFatBinSegment`:
magic, version, the address of the bundle, and an unused address, 24 bytes. Source: clang's
lib/CodeGen/CGCUDANV.cpp, and `__CudaFatBinaryWrapper` in HIP's clr/hipamd/src/hip_fatbin.hpp.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rocwheel.wheels import elf, pe
from rocwheel.wheels.devicecode import bundle as offload
from rocwheel.wheels.devicecode.bundle import Bundle
from rocwheel.wheels.devicecode.gpu import (
    HEADER_SIZE,
    GpuHeader,
    gpu_header,
    gpu_of_notes,
    is_gpu_elf,
    is_unnamed,
)
from rocwheel.wheels.elf import Elf, Pointer
from rocwheel.wheels.pe import Pe
from rocwheel.wheels.source import Source

BUNDLES = ".hip_fatbin"
WRAPPERS = ".hipFatBinSegment"
WRAPPER_MAGIC = 0x48495046
MOST_WRAPPERS = 50_000

_WRAPPER = struct.Struct("<IIQQ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """24 bytes at `offset` in the file that lead the program to a bundle, and what leads there.

    `bundle` is where the bundle lies in the file; None where it is not in this file.
    """

    offset: int
    version: int
    pointer: Pointer | None

    @property
    def bundle(self) -> int | None:
        return self.pointer.target if self.pointer else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FatBinary:
    """All GPU code of one file.

    `spans` are the parts of the file that hold bundles, as offset and size; `lone` is the header of a file
    that is itself one code object.
    """

    size: int
    spans: tuple[tuple[int, int], ...] = ()
    bundles: tuple[Bundle, ...] = ()
    wrappers: tuple[Wrapper, ...] = ()
    lone: GpuHeader | None = None

    @property
    def unreached(self) -> tuple[Bundle, ...]:
        """Bundles to which no wrapper leads, where there are wrappers at all."""
        reached = {one.bundle for one in self.wrappers}
        return tuple(one for one in self.bundles if self.wrappers and one.offset not in reached)


def may_hold_code(head: bytes) -> bool:
    """Whether a file that begins with `head` (24 bytes are enough) can be one that `fat_binary` reads."""
    return head.startswith((elf.MAGIC, pe.MAGIC)) or offload.is_bundle(head)


def fat_binary(source: Source, *, hashes: bool = False) -> FatBinary | None:
    """The GPU code in one file; None where it has none.

    Raises CheckError where the file is damaged. Only headers are read, but of compressed bundles, which are
    unpacked; with `hashes` their own hashes are checked too.
    """
    head = source.read_at(0, min(source.size, HEADER_SIZE))
    if is_unnamed(head):
        return FatBinary(size=source.size, lone=_of_version_2(source))
    if is_gpu_elf(head):
        return FatBinary(size=source.size, lone=gpu_header(head, source.subject))
    if offload.is_bundle(head):
        return _with_bundles(source, ((0, source.size),), hashes)
    file = _host_file(source, head)
    spans = tuple((one.offset, one.size) for one in file.named(BUNDLES) if one.size) if file else ()
    if file is None or not spans:
        return None
    return replace(_with_bundles(source, spans, hashes), wrappers=tuple(_wrappers(file)))


def _with_bundles(source: Source, spans: tuple[tuple[int, int], ...], hashes: bool) -> FatBinary:
    bundles = (
        bundle
        for begin, size in spans
        for bundle in offload.read_bundles(source, begin, begin + size, hashes=hashes)
    )
    return FatBinary(size=source.size, spans=spans, bundles=tuple(bundles))


def _of_version_2(source: Source) -> GpuHeader:
    return GpuHeader(target=gpu_of_notes(source), features=(), generic_version=0, abi=2)


def _host_file(source: Source, head: bytes) -> Elf | Pe | None:
    """The file as a library or program of a host that HIP runs on."""
    if head[:6] == elf.MAGIC_64:
        return Elf(source)
    return Pe(source) if pe.is_pe(source) else None


def _wrappers(file: Elf | Pe) -> Iterator[Wrapper]:
    placed = isinstance(file, Pe) or file.kind != elf.RELOCATABLE
    sections = file.named(WRAPPERS)
    count = sum(one.size // _WRAPPER.size for one in sections)
    if max(count, len(sections)) > MOST_WRAPPERS:
        raise file.wrong(f"it claims {count:,} wrappers of bundles in {len(sections):,} sections")
    for section in sections:
        offset, size = section.offset, section.size
        found = file.pointers(section) if isinstance(file, Elf) and isinstance(section, elf.Section) else []
        pointers = {one.at: one for one in found}
        data = file.source.read_at(offset, size // _WRAPPER.size * _WRAPPER.size)
        for number, (magic, version, address, _) in enumerate(_WRAPPER.iter_unpack(data)):
            if magic != WRAPPER_MAGIC:
                raise file.wrong(f"bundle wrapper {number} begins with {magic:#x}")
            at = offset + number * _WRAPPER.size
            pointer = pointers.get(at + 8)
            if pointer is None and address and placed:
                # a program at fixed addresses and a PE file hold the address itself
                target = file.at_address(address)
                pointer = Pointer(at=at + 8, target=target, form="place", value_at=at + 8, value=address)
            yield Wrapper(offset=at, version=version, pointer=pointer)
