"""kpack archives written, as `kpack` reads them; the same code gives the same bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgpack
import zstandard

from rocbase.errors import InputError
from rocwheel.wheels.devicecode.kpack import ALIGNMENT, HEADER, MAGIC, VERSION, ZSTD, Scheme
from rocwheel.wheels.devicecode.kpack_reference import Reference
from rocwheel.wheels.parts import BytePart, Joined, bytes_part, pieces, source_part, zeros
from rocwheel.wheels.scratch import Scratch
from rocwheel.wheels.source import ByteSource

ZSTD_LEVEL = 9
"""46 MB of code a second; level 19 packs 3 MB a second to nine tenths of the size."""
LARGEST_FRAME = 0xFFFFFFFF
"""Bytes of a packed code object; its size has 32 bits in the archive."""

_SIZE = struct.Struct("<I")


@dataclass(frozen=True, slots=True, kw_only=True)
class KpackCode:
    """A code object: the library that it is of (`lib/x.so#0`), its target (gfx90a:xnack-), its bytes."""

    name: str
    target_id: str
    content: ByteSource


def archive(code: Sequence[KpackCode], group: str, results: Scratch, scheme: Scheme = ZSTD) -> Joined:
    """An archive of this code, in this order, as far as it is new in `results`.

    `group` names what the libraries belong to. Raises InputError for code that is too large.
    """
    toc: dict[str, dict[str, dict[str, Any]]] = {}
    for number, piece in enumerate(code):
        row = {"type": "hsaco", "ordinal": number, "original_size": piece.content.size}
        toc.setdefault(piece.name, {})[piece.target_id] = row
    targets = sorted({piece.target_id for piece in code})
    body, layout = _frames(code, results) if scheme == ZSTD else _as_they_are(code)
    table = {
        "format_version": VERSION,
        "group_name": group,
        "gfx_arch_family": targets[0] if targets else "",
        "gfx_arches": targets,
        "toc": toc,
        "compression_scheme": scheme,
        **layout,
    }
    end = ALIGNMENT + sum(part.size for part in body)
    header = HEADER.pack(MAGIC, VERSION, end)
    packed: bytes = msgpack.packb(table, use_bin_type=True)
    return Joined([bytes_part(header), zeros(ALIGNMENT - len(header)), *body, bytes_part(packed)])


def reference(ref: Reference) -> bytes:
    """The bytes of the section by which a library names its archives."""
    data: bytes = msgpack.packb(
        {"kpack_search_paths": list(ref.search), "kernel_name": ref.name}, use_bin_type=True
    )
    return data


def _frames(code: Sequence[KpackCode], results: Scratch) -> tuple[list[BytePart], dict[str, Any]]:
    body = [bytes_part(_SIZE.pack(len(code)))]
    for piece in code:
        frame = results.put(_zstd(piece.content))
        if frame.size > LARGEST_FRAME:
            raise InputError(
                f"{piece.name} for {piece.target_id} is too large for a kpack archive",
                cause=f"packed it has {frame.size:,} bytes; an archive has room for {LARGEST_FRAME:,}",
                next_step="build the library in smaller parts",
            )
        body += [bytes_part(_SIZE.pack(frame.size)), frame]
    return body, {"zstd_offset": ALIGNMENT, "zstd_size": sum(part.size for part in body)}


def _as_they_are(code: Sequence[KpackCode]) -> tuple[list[BytePart], dict[str, Any]]:
    blobs, offset = [], ALIGNMENT
    for piece in code:
        blobs.append({"offset": offset, "size": piece.content.size})
        offset += piece.content.size
    return [source_part(piece.content) for piece in code], {"blobs": blobs}


def _zstd(content: ByteSource) -> Iterator[bytes]:
    # two workers: the bytes are the same with any number of them, and the memory stays bounded
    packer = zstandard.ZstdCompressor(level=ZSTD_LEVEL, threads=2).compressobj(size=content.size)
    for piece in pieces(content):
        yield packer.compress(piece)
    yield packer.flush()
