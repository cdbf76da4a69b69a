"""Offload bundles: the containers in which clang puts one code object per GPU target into a file.

Source of the formats: clang's documentation "Clang Offload Bundler" (Bundled Binary File Layout, Compressed
Offload Bundle File Layout) and llvm/lib/Object/OffloadBundle.cpp.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode.gpu import HEADER_SIZE, MOST_KEPT, GpuHeader, gpu_header
from rocwheel.wheels.devicecode.unpacking import Unpacking, unsound
from rocwheel.wheels.marks import BUNDLE, COMPRESSED
from rocwheel.wheels.source import ByteSource

MAGIC = BUNDLE
COMPRESSED_MAGIC = COMPRESSED

ALIGNMENT = 4096
"""Where clang and the linker put the next bundle, and clang a code object in its bundle."""

MOST_ENTRIES = 4096
LONGEST_ID = 1024

# hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-; `hip` is the older kind, `hcc` that of the compiler before
# it, and a fourth part of the triple may be written out.
_ENTRY_ID = re.compile(
    r"(?:hip(?:v4)?|hcc)-(?P<isa>amdgcn|spirv64)-amd-amdhsa-(?:unknown)?-?"
    r"(?P<target>[a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?P<features>(?::[a-z]+[+-])*)"
)

Compression = Literal["", "zlib", "zstd"]

_COMPRESSED_HEADERS = {1: "<IQ", 2: "<IIQ", 3: "<QQQ"}
"""After magic, version and method: [size of the whole,] size unpacked, hash."""

_COMPRESSED_BEGINNING = re.compile(rb"CCOB[\x01-\x03]\x00[\x00\x01]\x00")

_PACKED_MAGIC: dict[Compression, bytes] = {"zlib": b"\x78", "zstd": b"\x28\xb5\x2f\xfd"}
"""How packed data begin: RFC 1950, section 2.2, with the window that clang uses; RFC 8878, section 3.1.1."""

_METHODS: dict[int, Compression] = {0: "zlib", 1: "zstd"}


class BundleEntry(NamedTuple):
    """One code object of a bundle. `target` is empty for the host's entry.

    `offset` and `size` are in bytes of the bundle, unpacked. `header` is what the code object says of itself;
    None for the host's entry and for what is not machine code.
    """

    id: str
    target: str
    features: tuple[str, ...]
    offset: int
    size: int
    header: GpuHeader | None = None

    @property
    def target_id(self) -> str:
        """As compilers take it: gfx90a:sramecc+:xnack-."""
        return ":".join((self.target, *self.features))


class Bundle(NamedTuple):
    """A bundle in a file: `offset` and `size` in bytes of the file, its entries in the bundle's order.

    `version` is that of the compressed format, 0 for a plain bundle; `header_size` that of the compressed
    header, 0 for a plain one; `unpacked_size` counts bytes of the plain bundle within.
    """

    offset: int
    size: int
    compression: Compression
    version: int
    header_size: int
    unpacked_size: int
    entries: tuple[BundleEntry, ...]

    @property
    def end(self) -> int:
        return self.offset + self.size

    @property
    def code(self) -> tuple[BundleEntry, ...]:
        """The entries that hold code for a GPU."""
        return tuple(entry for entry in self.entries if entry.target)


def is_bundle(head: bytes) -> bool:
    """Whether what begins with `head` (24 bytes are enough) is a bundle."""
    return head.startswith((MAGIC, COMPRESSED_MAGIC))


def read_bundle(
    source: ByteSource, offset: int, end: int, *, hashes: bool = False, heads: bool = False
) -> Bundle:
    """The bundle at `offset`, of which bytes up to `end` may be part; raises as `read_bundles` does.

    Of a plain bundle only headers are read; a compressed one is unpacked, and with `hashes` its own hash is
    checked too (an md5 that guards against accidents, and costs more than all the rest). With `heads` only
    its list of entries is unpacked: what the code objects say of themselves is not read.
    """
    if source.read_at(offset, min(len(COMPRESSED_MAGIC), end - offset)) == COMPRESSED_MAGIC:
        return _read_compressed(source, offset, end, hashes, heads)
    place = source.window(offset, end - offset)
    entries, header_size = entries_of(lambda: place.read_at, place.size, source.subject)
    size = max([header_size, *(entry.offset + entry.size for entry in entries if entry.size)])
    return Bundle(
        offset=offset,
        size=size,
        compression="",
        version=0,
        header_size=0,
        unpacked_size=size,
        entries=entries,
    )


def is_packed(source: ByteSource, offset: int, end: int) -> bool:
    """Whether the word for a compressed bundle at `offset` stands before packed data, or before a newer form.

    8 bytes of it are there.
    """
    version, method = struct.unpack("<4xHH", source.read_at(offset, 8))
    layout = _COMPRESSED_HEADERS.get(version)
    if layout is None or method not in _METHODS:
        return True
    begin, magic = offset + 8 + struct.calcsize(layout), _PACKED_MAGIC[_METHODS[method]]
    return begin + len(magic) <= end and source.read_at(begin, len(magic)) == magic


def contents(
    source: ByteSource,
    bundle: Bundle,
    select: Callable[[BundleEntry], bool] = lambda entry: bool(entry.target),
) -> Iterator[tuple[BundleEntry, bytes]]:
    """The entries of a bundle that are wanted, with their bytes, in the order in which they lie there."""
    place = source.window(bundle.offset, bundle.size)
    read = _unpacking(source, bundle).read_at if bundle.compression else place.read_at
    for entry in sorted(bundle.entries, key=lambda entry: entry.offset):
        if select(entry):
            yield entry, read(entry.offset, entry.size)


@lru_cache(MOST_KEPT)
def parse_entry_id(entry_id: str, subject: str) -> tuple[str, tuple[str, ...]] | None:
    """Target and features of `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`; None for the host's entry."""
    if entry_id.startswith("host-"):
        return None
    match = _ENTRY_ID.fullmatch(entry_id)
    if match is None:
        raise unsound(subject, f"HIP bundles have no entry named {entry_id[:100]!r}")
    return match["target"], tuple(sorted(match["features"].split(":")[1:]))


_ReadAt = Callable[[int, int], bytes]
"""Exactly so many bytes at an offset in a plain bundle; of one that is being unpacked only ever forward."""


def entries_of(opened: Callable[[], _ReadAt], size: int, subject: str) -> tuple[tuple[BundleEntry, ...], int]:
    """The entries of a plain bundle of at most `size` bytes, and the size of its header.

    `opened` begins to read it anew.
    """
    entries, header_size = _read_header(opened(), size, subject)
    _check_order(entries, header_size, size, subject)
    read = opened()
    headers: dict[str, GpuHeader | None] = {}
    for entry in sorted(entries, key=lambda entry: (entry.offset, entry.size)):
        if entry.target:
            headers[entry.id] = _header(entry, read(entry.offset, min(entry.size, HEADER_SIZE)), subject)
    return tuple(entry._replace(header=headers.get(entry.id)) for entry in entries), header_size


def _check_order(entries: Sequence[BundleEntry], header_size: int, size: int, subject: str) -> None:
    """Raise CheckError where entries overlap, or lie outside a plain bundle of at most `size` bytes."""
    end = header_size
    for entry in sorted(entries, key=lambda entry: (entry.offset, entry.size)):
        empty = entry.size == 0 and not entry.target
        # the compiler aligns an empty one, too: where the header is all that there is, beyond the end
        if entry.offset + entry.size > size + (ALIGNMENT if empty else 0) or (
            entry.offset < end and not empty
        ):
            raise unsound(subject, f"the entry {entry.id} overlaps another or lies outside its bundle")
        if not empty:
            end = entry.offset + entry.size


def _read_header(read: _ReadAt, size: int, subject: str) -> tuple[tuple[BundleEntry, ...], int]:
    data, position = b"", 0

    def take(count: int) -> bytes:
        nonlocal data, position
        while position + count > len(data):
            extra = min(max(ALIGNMENT, len(data)), size - len(data))
            if extra <= 0:
                raise unsound(subject, "a bundle is truncated")
            data += read(len(data), extra)
        position += count
        return data[position - count : position]

    if take(len(MAGIC)) != MAGIC:
        raise unsound(subject, "a bundle does not start with its magic number")
    count = int.from_bytes(take(8), "little")
    if count > MOST_ENTRIES:
        raise unsound(subject, f"a bundle claims {count:,} entries")
    entries: dict[str, BundleEntry] = {}
    for _ in range(count):
        offset, length, id_length = struct.unpack("<QQQ", take(24))
        if id_length > LONGEST_ID:
            raise unsound(subject, f"a bundle entry's name claims {id_length:,} bytes")
        name = take(id_length).decode("ascii", errors="replace")
        target, features = parse_entry_id(name, subject) or ("", ())
        if name in entries:
            raise unsound(subject, f"a bundle holds {name} twice")
        entries[name] = BundleEntry(id=name, target=target, features=features, offset=offset, size=length)
    return tuple(entries.values()), position


def _header(entry: BundleEntry, head: bytes, subject: str) -> GpuHeader | None:
    """What the code object says, if anything. Raises CheckError where the entry says another thing."""
    if "-spirv64-" in entry.id:
        return None  # SPIR-V is not ELF; the runtime compiles it for the GPU that it meets
    header = gpu_header(head, f"{subject} ({entry.id})")
    if (header.target, header.features) != (entry.target, entry.features):
        inside = ":".join((header.target, *header.features))
        raise CheckError(
            f"the bundle entry {entry.id} holds code for {inside}",
            cause="the bundle was put together from the wrong objects, or was edited",
            next_step="build the file again",
            subject=subject,
        )
    return header


def read_packed_header(source: ByteSource, offset: int, end: int) -> tuple[Bundle, int]:
    """What a compressed bundle's header says, as one without entries, and the hash of its content."""
    subject = source.subject
    if end - offset < 8:
        raise unsound(subject, "a bundle is truncated")
    version, method = struct.unpack("<4xHH", source.read_at(offset, 8))
    layout = _COMPRESSED_HEADERS.get(version)
    if layout is None or method not in _METHODS:
        raise CheckError(
            f"a compressed bundle has version {version} and method {method}",
            cause=f"supported are versions {_listed(_COMPRESSED_HEADERS)} and methods {_listed(_METHODS)}; "
            "the compiler is newer, or the file is damaged",
            next_step="build without --offload-compress, or report the compiler's version",
            subject=subject,
        )
    header_size = 8 + struct.calcsize(layout)
    if offset + header_size > end:
        raise unsound(subject, "a bundle is truncated")
    *sizes, unpacked_size, expected = struct.unpack(layout, source.read_at(offset + 8, header_size - 8))
    size = sizes[0] if sizes else _end_of_version_1(source, offset + header_size, end) - offset
    if not header_size <= size <= end - offset:
        raise unsound(subject, f"a compressed bundle claims {size:,} bytes")
    bundle = Bundle(
        offset=offset,
        size=size,
        compression=_METHODS[method],
        version=version,
        header_size=header_size,
        unpacked_size=unpacked_size,
        entries=(),
    )
    return bundle, expected


def _read_compressed(source: ByteSource, offset: int, end: int, hashes: bool, heads: bool) -> Bundle:
    subject = source.subject
    bundle, expected = read_packed_header(source, offset, end)
    unpacked_size = bundle.unpacked_size
    if heads:
        read = _unpacking(source, bundle, heads=True).read_at
        entries, begin = _read_header(read, unpacked_size, subject)
        _check_order(entries, begin, unpacked_size, subject)
        return bundle._replace(entries=entries)
    last: list[Unpacking] = []

    def opened() -> _ReadAt:
        last[:] = [_unpacking(source, bundle, hashes=hashes)]
        return last[0].read_at

    entries, _ = entries_of(opened, unpacked_size, subject)
    last[0].finish(expected if hashes else None)
    return bundle._replace(entries=entries)


def _unpacking(source: ByteSource, bundle: Bundle, *, hashes: bool = False, heads: bool = False) -> Unpacking:
    packed = source.window(bundle.offset + bundle.header_size, bundle.size - bundle.header_size)
    # version 1 does not say where its data end: padding may follow
    padded = bundle.version == 1
    return Unpacking(
        packed, bundle.compression, bundle.unpacked_size, padded=padded, hashes=hashes, heads=heads
    )


def _end_of_version_1(source: ByteSource, position: int, end: int) -> int:
    """A bundle of version 1 does not say its size; like clang, look for where the next one begins."""
    tail = b""
    for data in source.chunks(position, end - position):
        position += len(data)
        tail += data
        if match := _COMPRESSED_BEGINNING.search(tail):
            return position - len(tail) + match.start()
        tail = tail[-7:]
    return end


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
