"""Offload bundles: the containers in which clang puts one code object per GPU target into a file.

Source of the formats: clang's documentation "Clang Offload Bundler" (Bundled Binary File Layout, Compressed
Offload Bundle File Layout) and llvm/lib/Object/OffloadBundle.cpp.
"""

from __future__ import annotations

import hashlib
import io
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rocwright.errors import CheckError
from rocwright.wheels.elf import HEADER_SIZE, gpu_header
from rocwright.wheels.streams import CHUNK, Budget, Inflating, Reader, Window, unpacking_zstd

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED_MAGIC = b"CCOB"

MOST_ENTRIES = 4096
LONGEST_ID = 1024

# hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-; `hip` is the older kind, and a fourth part of the triple
# may be written out.
_ENTRY_ID = re.compile(
    r"hip(?:v4)?-(?P<isa>amdgcn|spirv64)-amd-amdhsa-(?:unknown)?-?"
    r"(?P<target>[a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?P<features>(?::[a-z]+[+-])*)"
)

_COMPRESSED_HEADERS = {1: "<IQ", 2: "<IIQ", 3: "<QQQ"}
"""After magic, version and method: [size of the whole,] size unpacked, hash."""

_COMPRESSED_BEGINNING = re.compile(rb"CCOB[\x01-\x03]\x00[\x00\x01]\x00")

_UNPACKERS = {0: Inflating, 1: unpacking_zstd}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One code object of a bundle: its target and features, size in bytes and sha256."""

    target: str
    features: tuple[str, ...]
    size: int
    sha256: str


def read_bundles(
    file: io.RawIOBase, begin: int, end: int, budget: Budget, subject: str
) -> Iterator[list[Entry]]:
    """The bundles that follow one another in bytes `begin` to `end` of a file, with zeros between them.

    Raises CheckError for anything that is no whole bundle, and where an entry's name and the header of its
    code object do not agree. Memory use does not grow with what the file holds.
    """
    position = _next_bundle(file, begin, end, subject)
    while position is not None:
        window = Window(file, position, end)
        if _peek(file, position, len(COMPRESSED_MAGIC)) == COMPRESSED_MAGIC:
            entries = _read_compressed(window, file, budget, subject)
        else:
            entries = _read_plain(window, end - position, subject)
        yield entries
        position = _next_bundle(file, window.position, end, subject)


def parse_entry_id(entry_id: str, subject: str) -> tuple[str, tuple[str, ...]] | None:
    """Target and features of `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`; None for the host's entry."""
    if entry_id.startswith("host-"):
        return None
    match = _ENTRY_ID.fullmatch(entry_id)
    if match is None:
        raise _wrong(subject, f"no entry of a HIP program is named {entry_id[:100]!r}")
    return match["target"], tuple(sorted(match["features"].split(":")[1:]))


def _next_bundle(file: io.RawIOBase, position: int, end: int, subject: str) -> int | None:
    """Where the next byte that is not zero lies, which must begin a bundle."""
    window = Window(file, position, end)
    while data := window.read(CHUNK):
        stripped = data.lstrip(b"\0")
        if stripped:
            found = window.position - len(stripped)
            if not _peek(file, found, len(MAGIC)).startswith((MAGIC, COMPRESSED_MAGIC)):
                raise _wrong(subject, f"at byte {found:,} there is neither a bundle nor padding")
            return found
    if window.position < end:
        raise _wrong(subject, "the file ends before its bundles do")
    return None


def _read_plain(source: Reader, size: int, subject: str) -> list[Entry]:
    """The entries of one bundle at the beginning of `source`, of which `size` bytes may belong to it."""
    reader = _Forward(source, size, subject)
    if reader.take(len(MAGIC)) != MAGIC:
        raise _wrong(subject, "a bundle does not begin as one")
    count = reader.number()
    if count > MOST_ENTRIES:
        raise _wrong(subject, f"a bundle claims {count:,} entries")
    headers = []
    for _ in range(count):
        offset, length, id_length = reader.number(), reader.number(), reader.number()
        if id_length > LONGEST_ID:
            raise _wrong(subject, f"a bundle entry's name claims {id_length:,} bytes")
        name = reader.take(id_length).decode("ascii", errors="replace")
        headers.append((offset, length, name))

    by_name: dict[str, Entry] = {}
    for offset, length, name in sorted(headers):
        parsed = parse_entry_id(name, subject)
        if name in by_name:
            raise _wrong(subject, f"a bundle holds {name} twice")
        if length == 0 and parsed is None:
            continue
        if offset < reader.position or offset + length > size:
            raise _wrong(subject, f"the entry {name} overlaps another or lies outside its bundle")
        reader.skip(offset - reader.position)
        if parsed is None:
            reader.skip(length)
            continue
        head = reader.take(min(length, HEADER_SIZE))
        _check_agreement(name, *parsed, head, subject)
        digest = hashlib.sha256(head)
        for chunk in reader.chunks(length - len(head)):
            digest.update(chunk)
        target, features = parsed
        by_name[name] = Entry(target=target, features=features, size=length, sha256=digest.hexdigest())
    return [by_name[name] for _, _, name in headers if name in by_name]


def _check_agreement(name: str, target: str, features: tuple[str, ...], head: bytes, subject: str) -> None:
    if "-spirv64-" in name:
        return  # SPIR-V is not ELF; the runtime compiles it for the GPU that it meets
    header = gpu_header(head, f"{subject} ({name})")
    if (header.target, header.features) != (target, features):
        inside = ":".join((header.target, *header.features))
        raise CheckError(
            f"the bundle entry {name} holds code for {inside}",
            cause="the bundle was put together from the wrong objects, or was edited",
            next_step="build it again",
            subject=subject,
        )


def _read_compressed(window: Window, file: io.RawIOBase, budget: Budget, subject: str) -> list[Entry]:
    """The entries of one compressed bundle at `window`, which then stands behind it."""
    begin = window.position
    version, method = struct.unpack("<4xHH", _exactly(window, 8, subject))
    layout = _COMPRESSED_HEADERS.get(version)
    unpacker = _UNPACKERS.get(method)
    if layout is None or unpacker is None:
        raise CheckError(
            f"a compressed bundle has version {version} and method {method}",
            cause=f"known are the versions {_listed(_COMPRESSED_HEADERS)} and methods {_listed(_UNPACKERS)}; "
            "the compiler is newer, or the file is damaged",
            next_step="build without --offload-compress, or report the compiler's version",
            subject=subject,
        )
    fields = struct.unpack(layout, _exactly(window, struct.calcsize(layout), subject))
    *sizes, unpacked_size, expected_hash = fields
    end = begin + sizes[0] if sizes else _end_of_version_1(file, window.position, window.end)
    if not window.position <= end <= window.end:
        raise _wrong(subject, f"a compressed bundle claims {end - begin:,} bytes")

    hashing = _Hashing(unpacker(Window(file, window.position, end)), budget, subject)
    entries = _read_plain(hashing, unpacked_size, subject)
    while (left := unpacked_size - hashing.count) > 0 and hashing.read(min(left, CHUNK)):
        pass
    if sizes:
        hashing.read(1)  # version 1 may be followed by padding, which is no data for its unpacker
    if hashing.count != unpacked_size:
        raise _wrong(subject, f"a compressed bundle does not unpack to {unpacked_size:,} bytes")
    if hashing.low_md5() != expected_hash:
        raise _wrong(subject, "a compressed bundle's hash is not that of what it holds")
    window.position = end
    return entries


def _end_of_version_1(file: io.RawIOBase, position: int, end: int) -> int:
    """A bundle of version 1 does not say its size; like clang, look for where the next one begins."""
    window = Window(file, position, end)
    held = b""
    while data := window.read(CHUNK):
        held += data
        if found := _COMPRESSED_BEGINNING.search(held):
            return window.position - len(held) + found.start()
        held = held[-7:]
    return end


class _Hashing:
    """Passes on what it reads and keeps count and md5 of it (clang's choice; it guards against accidents)."""

    def __init__(self, source: Reader, budget: Budget, subject: str) -> None:
        self._source = source
        self._budget = budget
        self._subject = subject
        self._md5 = hashlib.md5(usedforsecurity=False)
        self.count = 0

    def read(self, size: int, /) -> bytes:
        try:
            data = self._source.read(size)
        except CheckError:
            raise
        except Exception as error:  # zlib.error, ZstdError
            raise _wrong(self._subject, f"a compressed bundle does not unpack: {error}") from error
        self._budget.spend(len(data))
        self._md5.update(data)
        self.count += len(data)
        return data

    def low_md5(self) -> int:
        return int.from_bytes(self._md5.digest()[:8], "little")


class _Forward:
    """Exact reads from a reader of at most `size` bytes that only goes forward."""

    def __init__(self, source: Reader, size: int, subject: str) -> None:
        self._source = source
        self._size = size
        self._subject = subject
        self.position = 0

    def take(self, count: int) -> bytes:
        return b"".join(self.chunks(count))

    def skip(self, count: int) -> None:
        for _ in self.chunks(count):
            pass

    def number(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def chunks(self, count: int) -> Iterator[bytes]:
        if self.position + count > self._size:
            raise _wrong(self._subject, "a bundle is cut short")
        while count:
            data = self._source.read(min(count, CHUNK))
            if not data:
                raise _wrong(self._subject, "a bundle is cut short")
            count -= len(data)
            self.position += len(data)
            yield data


def _peek(file: io.RawIOBase, position: int, count: int) -> bytes:
    file.seek(position)
    return file.read(count) or b""


def _exactly(window: Window, count: int, subject: str) -> bytes:
    data = window.read(count)
    if len(data) != count:
        raise _wrong(subject, "a bundle is cut short")
    return data


def _listed(known: Iterable[int]) -> str:
    return ", ".join(map(str, known))


def _wrong(subject: str, why: str) -> CheckError:
    return CheckError(
        f"not a sound offload bundle: {why}",
        cause="the file is cut short, damaged, or written by a compiler that rocwright does not know",
        next_step="build it or get it again",
        subject=subject,
    )
