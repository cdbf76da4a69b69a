"""A log of any size as clean pieces of whole lines: bounded memory, any encoding, compressed or not."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import zstandard

from rocbase.errors import InputError
from rocbase.files.bounds import LOGS, OverBoundError

# Bytes read at once: few, so that they stay in the cache; a longer line is cut into such pieces.
PIECE = 96 * 1024

# Lines shown from the one that was found.
MOST_LINES = 12


class _Unpacker(Protocol):
    def read1(self, size: int = ..., /) -> bytes:
        """Some bytes, at most `size`: what there is before a place that is damaged; empty at the end."""


_TERMINAL = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|[\x08\x07]"
)
_QUOTES = tuple(quote.encode() for quote in "\u2018\u2019")
_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_COMPRESSED: tuple[tuple[bytes, Callable[[Any], _Unpacker]], ...] = (
    (b"\x1f\x8b", lambda file: gzip.GzipFile(fileobj=file)),
    (
        b"\x28\xb5\x2f\xfd",
        lambda file: zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True),
    ),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
    (b"BZh", bz2.BZ2File),
)


_NO_LOGS = {b"\x7fELF": "a program or a library", b"PK\x03\x04": "a wheel or another zip file"}
_NO_LOGS |= {b"!<arch>\n": "a library or a Debian package", b"GGUF": "a model"}


@contextmanager
def open_log(path: Path) -> Iterator[IO[bytes]]:
    """Yield the bytes of a log. Raises InputError if the file cannot be read, or is a program."""
    try:
        with path.open("rb") as file:
            for magic in (magic for magic in _NO_LOGS if file.peek(8).startswith(magic)):
                raise InputError(
                    f"{path} is no log",
                    cause=f"it is {_NO_LOGS[magic]}",
                    next_step="name the file with the output of the build, or see: rocwright logs",
                )
            yield file
    except OSError as error:
        raise InputError(
            f"the log {path} cannot be read",
            cause=error.strerror or str(error),
            next_step="check its name and permissions; - reads standard input",
        ) from error


def pieces(file: IO[bytes], piece: int = PIECE) -> Iterator[bytes]:
    """Clean whole lines, some `piece` bytes at a time, each ended by a newline.

    Terminal codes and NUL bytes are taken out, curved quotes made plain, a carriage return ends a line too.
    A compressed log that is cut off or damaged is read as far as it goes.
    """
    pending = b""
    for chunk in _chunks(file, piece):
        data = pending + chunk if pending else chunk
        end = data.rfind(b"\n") + 1
        if not end and len(data) < piece:
            pending = data
            continue
        end = end or len(data)
        pending = data[end:]
        yield clean(data[:end] if pending else data)
    if pending:
        yield clean(pending)


def clean(data: bytes) -> bytes:
    """Lines without what only a terminal, or a broken disk, puts into them."""
    if b"\0" in data:
        data = data.replace(b"\0", b"")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\x1b" in data or b"\x08" in data:
        data = _TERMINAL.sub(b"", data)
    if b"\xe2" in data:
        for quote in _QUOTES:
            data = data.replace(quote, b"'")
    return data if data.endswith(b"\n") else data + b"\n"


def is_compressed(first: bytes) -> bool:
    """Whether a log that begins so is compressed."""
    return any(first.startswith(magic) for magic, _ in _COMPRESSED)


def _chunks(file: IO[bytes], piece: int) -> Iterator[bytes]:
    """Bytes as they come, unpacked, as UTF-8 or what is near it."""
    first = _read(file, piece)
    for magic, unpack in _COMPRESSED:
        if first.startswith(magic):
            packed = _Again(first, file)
            yield from _unpacked(unpack(packed), packed, piece)
            return
    encoding = _encoding(first)
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace") if encoding else None
    while first:
        yield decoder.decode(first).encode(errors="replace") if decoder else first
        first = _read(file, piece)


def _read(file: IO[bytes], piece: int) -> bytes:
    """Bytes as soon as there are some, from a pipe too; empty at the end."""
    return file.read1(piece) if isinstance(file, io.BufferedReader) else file.read(piece)


def _unpacked(file: _Unpacker, packed: _Again, piece: int) -> Iterator[bytes]:
    size = 0
    try:
        while chunk := file.read1(piece):
            size += len(chunk)
            if size > LOGS.size_of(packed.taken):
                raise OverBoundError("it unpacks to more bytes than any real one")
            yield chunk
    except (OSError, EOFError, lzma.LZMAError, zlib.error, zstandard.ZstdError, OverBoundError) as error:
        yield f"\n(the compressed log ends here: {error})\n".encode()


def _encoding(first: bytes) -> str:
    """The encoding of a log of two bytes a character, as some shells of Windows write; "" for any other."""
    if first.startswith(_BOMS):
        return "utf-16"  # the decoder takes the mark away
    even, odd = first[::2].count(0), first[1::2].count(0)
    # text in two bytes a character has a zero in almost every second byte
    if len(first) >= 16 and even + odd > len(first) // 3:
        return "utf-16-le" if odd > even else "utf-16-be"
    return ""


class _Again:
    """A stream whose first bytes were read already."""

    def __init__(self, first: bytes, remainder: IO[bytes]) -> None:
        self._first, self._rest, self.taken = first, remainder, len(first)

    def read(self, size: int) -> bytes:
        if self._first:
            chunk, self._first = self._first[:size], self._first[size:]
            return chunk
        data = self._rest.read(size)
        self.taken += len(data)
        return data
