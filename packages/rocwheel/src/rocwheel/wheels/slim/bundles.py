"""Offload bundles written: plain ones as clang-offload-bundler lays them out, and compressed ones.

Source of the formats: clang's documentation "Clang Offload Bundler" (Bundled Binary File Layout, Compressed
Offload Bundle File Layout), and clang/lib/Driver/OffloadBundler.cpp for the order of things.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence

import zstandard

from rocwheel.wheels.devicecode.bundle import (
    ALIGNMENT,
    COMPRESSED_MAGIC,
    MAGIC,
    Bundle,
    Compression,
    contents,
)
from rocwheel.wheels.parts import BytePart, Joined, bytes_part, pieces, zeros
from rocwheel.wheels.scratch import Scratch, scratch
from rocwheel.wheels.source import ByteSource

ZSTD_LEVEL = 9
"""46 MB of code a second; level 19 packs 3 MB a second to nine tenths of the size."""
ZLIB_LEVEL = 9

_HEADERS = {1: "<4sHHIQ", 2: "<4sHHIIQ", 3: "<4sHHQQQ"}
_METHODS: dict[str, int] = {"zlib": 0, "zstd": 1}
_LARGEST = 0xFFFFFFFF
NEW_VERSION = 2
"""The version that clang 19 to 21 write if not told otherwise."""


def alignment(offsets: Sequence[int]) -> int:
    """The alignment that a bundle's entries at these offsets were given."""
    align = ALIGNMENT
    while any(offset % align for offset in offsets):
        align //= 2
    return align


def rebuilt(
    source: ByteSource, bundle: Bundle, retained: Collection[int], packing: Compression, results: Scratch
) -> ByteSource:
    """The bundle with only those of its entries that are `retained` (numbers), in `results` if made anew."""
    same_packing = packing == bundle.compression
    if same_packing and len(retained) == len(bundle.entries):
        return source.window(bundle.offset, bundle.size)
    align = alignment([entry.offset for entry in bundle.entries])
    if not packing:
        return plain(_contents(source, bundle, retained, results), align)
    with scratch(results.folder) as aside:
        content = plain(_contents(source, bundle, retained, aside), align)
        return packed(content, packing, bundle.version if same_packing else NEW_VERSION, results)


def _contents(
    source: ByteSource, bundle: Bundle, retained: Collection[int], aside: Scratch
) -> list[tuple[str, BytePart]]:
    """The entries that stay, with their ids; of a compressed bundle they are put into `aside`."""
    entries = [bundle.entries[number] for number in sorted(retained)]
    if not bundle.compression:
        return [(entry.id, BytePart(source, bundle.offset + entry.offset, entry.size)) for entry in entries]
    unpacked = {entry.id: aside.put([code]) for entry, code in contents(source, bundle, entries.__contains__)}
    return [(entry.id, unpacked[entry.id]) for entry in entries]


def plain(entries: Sequence[tuple[str, BytePart]], align: int) -> Joined:
    """An uncompressed bundle of these entries (id, code), in this order."""
    size = len(MAGIC) + 8 + sum(24 + len(name) for name, _ in entries)
    header = MAGIC + struct.pack("<Q", len(entries))
    parts = []
    position = size
    for name, code in entries:
        padding = -position % align
        offset = position + padding
        header += struct.pack("<QQQ", offset, code.size, len(name)) + name.encode()
        if code.size:
            parts += [zeros(padding), code]
            position = offset + code.size
    return Joined([bytes_part(header), *parts])


def packed(bundle: Joined, packing: Compression, version: int, results: Scratch) -> Joined:
    """A bundle compressed, kept in `results`; `version` of the header is raised where a size is too large."""
    digest = hashlib.md5(usedforsecurity=False)

    def content() -> Iterator[bytes]:
        for chunk in pieces(bundle):
            digest.update(chunk)
            yield chunk

    body = results.put(_COMPRESSORS[packing](content(), bundle.size))
    if max(bundle.size, body.size + 64) > _LARGEST:
        version = 3
    layout = struct.Struct(_HEADERS[version])
    sizes = [] if version == 1 else [layout.size + body.size]
    low = int.from_bytes(digest.digest()[:8], "little")
    header = layout.pack(COMPRESSED_MAGIC, version, _METHODS[packing], *sizes, bundle.size, low)
    return Joined([bytes_part(header), body])


def _zstd(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    # Two workers: the bytes are the same with any number of them, and the memory stays bounded.
    packer = zstandard.ZstdCompressor(level=ZSTD_LEVEL, threads=2).compressobj(size=size)
    for chunk in chunks:
        yield packer.compress(chunk)
    yield packer.flush()


def _zlib(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    packer = zlib.compressobj(ZLIB_LEVEL)
    for chunk in chunks:
        yield packer.compress(chunk)
    yield packer.flush()


_COMPRESSORS: dict[str, Callable[[Iterator[bytes], int], Iterator[bytes]]] = {"zlib": _zlib, "zstd": _zstd}
