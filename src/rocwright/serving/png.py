"""Is a picture that a server gave a whole PNG, and of what size?

Source: Portable Network Graphics specification, sections 5 (chunks) and 11 (IHDR).
"""

from __future__ import annotations

import itertools
import struct
import zlib

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHUNK_OVERHEAD = 12  # bytes of an empty chunk


def png_size(data: bytes) -> tuple[int, int]:
    """Width and height. Raises ValueError for what is no PNG, is cut short, or has a chunk that changed."""
    if not data.startswith(_SIGNATURE):
        raise ValueError("it does not begin as a PNG")
    offset, size = len(_SIGNATURE), (0, 0)
    for number in itertools.count():
        if len(data) - offset < _CHUNK_OVERHEAD:
            raise ValueError("it is cut short")
        length = int.from_bytes(data[offset : offset + 4])
        kind, body = data[offset + 4 : offset + 8], data[offset + 8 : offset + 8 + length]
        if data[offset + 8 + length : offset + _CHUNK_OVERHEAD + length] != struct.pack(
            ">I", zlib.crc32(kind + body)
        ):
            raise ValueError(f"its chunk {number} is damaged")
        if number == 0:
            if kind != b"IHDR" or length < 8:
                raise ValueError("it does not say its size")
            size = (int.from_bytes(body[:4]), int.from_bytes(body[4:8]))
        if kind == b"IEND":
            return size
        offset += _CHUNK_OVERHEAD + length
    raise AssertionError("it ends with its data")
