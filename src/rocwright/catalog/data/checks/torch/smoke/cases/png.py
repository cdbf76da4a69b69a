"""Writes a PNG, for decoders to read."""

from __future__ import annotations

import struct
import zlib

Image = list[list[tuple[int, int, int]]]


def encode(image: Image) -> bytes:
    """An 8-bit RGB PNG; row n uses filter n modulo 5 (None, Sub, Up, Average, Paeth)."""
    rows = [[channel for pixel in row for channel in pixel] for row in image]
    packed = bytearray()
    above = [0] * len(rows[0])
    for number, row in enumerate(rows):
        packed.append(number % 5)
        for i, value in enumerate(row):
            a, b = row[i - 3] if i >= 3 else 0, above[i]
            c = above[i - 3] if i >= 3 else 0
            packed.append((value - (0, a, b, (a + b) // 2, paeth(a, b, c))[number % 5]) % 256)
        above = row
    header = struct.pack(">IIBBBBB", len(image[0]), len(image), 8, 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(bytes(packed))), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, body) for kind, body in parts)


def paeth(a: int, b: int, c: int) -> int:
    """Of left, above and upper left, the one nearest to a + b - c; the first of equals."""
    return min((a, b, c), key=lambda value: abs(a + b - c - value))


def chunk(kind: bytes, body: bytes) -> bytes:
    """A part of a PNG: its length, kind, body and checksum."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
