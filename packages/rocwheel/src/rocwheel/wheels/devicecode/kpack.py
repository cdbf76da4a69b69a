"""kpack archives: files with the code objects of many libraries, for one GPU target or a few.

A header names a table at the end, in MessagePack, and that names each code object by the library that it
belongs to (`lib/x.so#0`: the first of that library) and by its target. The code lies before the table, as it
is or as a zstd frame each. Source: ROCm/rocm-systems, shared/kpack/docs/multi_arch_packaging_with_kpack.md
("Kpack Archive Format") and shared/kpack/runtime/src/toc_parser.cpp.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode.gpu import HEADER_SIZE, GpuHeader, gpu_header
from rocwheel.wheels.devicecode.msgpack_walk import MalformedError, Walk
from rocwheel.wheels.devicecode.unpacking import Unpacking
from rocwheel.wheels.marks import KPACK
from rocwheel.wheels.source import ByteSource

MAGIC = KPACK
VERSION = 1
HEADER = struct.Struct("<4sIQ")
"""Magic, version, where the table begins."""

ALIGNMENT = 64
"""Where the code begins."""

LARGEST_TABLE = 32 * 1024 * 1024
MOST_CODE = 200_000
MOST_TARGETS = 4096
LONGEST_NAME = 4096
"""Bounds; the largest archives that AMD ships have some ten thousand code objects."""

NONE: Final = "none"
ZSTD: Final = "zstd-per-kernel"
Scheme = Literal["none", "zstd-per-kernel"]

_SIZE = struct.Struct("<I")
_TARGET = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*(?::[a-z]+[+-])*")
_CLIMBS = re.compile(r"^/|^[A-Za-z]:|\\|(^|/)\.\.(/|$)")
_SPIRV = "spirv"

_Placed = tuple[tuple[int, int, int], str, str]
"""Where code lies (offset, size there, size unpacked), the name of its library, its target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """One code object: the library that it is of (`lib/x.so#0`), its target, and where it lies.

    `offset` and `packed_size` are in bytes of the archive, `size` counts its bytes unpacked. `header` is what
    it says of itself: None until it is read, and for SPIR-V.
    """

    name: str
    target: str
    features: tuple[str, ...]
    size: int
    offset: int
    packed_size: int
    header: GpuHeader | None = None

    @property
    def target_id(self) -> str:
        """As compilers take it: gfx90a:sramecc+:xnack-."""
        return ":".join((self.target, *self.features))


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """What an archive's table says: its group of libraries, the targets that it is for, and its code.

    `code` is in the order in which it lies in the file.
    """

    scheme: Scheme
    group: str
    targets: tuple[str, ...]
    code: tuple[Packed, ...]

    @property
    def by_name(self) -> Mapping[str, Sequence[Packed]]:
        """The code by the library that it is of."""
        grouped: dict[str, list[Packed]] = defaultdict(list)
        for packed in self.code:
            grouped[packed.name].append(packed)
        return grouped


@dataclass(slots=True)
class _Table:
    """The table as it is read; rows are a name, a target, the number of the code, and its size unpacked."""

    scheme: str = NONE
    group: str = ""
    targets: list[str] = field(default_factory=list)
    blobs: list[tuple[int, int]] = field(default_factory=list)
    frames_at: int = 0
    frames_size: int = 0
    rows: list[tuple[str, str, int, int | None]] = field(default_factory=list)


def is_archive(head: bytes) -> bool:
    """Whether what begins with `head` (4 bytes are enough) is a kpack archive."""
    return head.startswith(MAGIC)


def read_archive(source: ByteSource, *, heads: bool = False) -> Archive:
    """The archive in `source`, each code object unpacked and seen to be what the table says.

    With `heads` only the beginning of each is, which tells its target. Raises CheckError for what is no sound
    archive. Memory use is bounded, whatever the table claims.
    """
    begin, table = _header(source)
    places = table.blobs if table.scheme == NONE else list(_frames(source, table, begin))
    _check_places(source, places, begin)
    scheme: Scheme = ZSTD if table.scheme == ZSTD else NONE
    return Archive(
        scheme=scheme,
        group=table.group,
        targets=tuple(table.targets),
        code=tuple(_code(source, scheme, sorted(_placed(source, table, places), key=_offset), heads)),
    )


def contents(
    source: ByteSource, archive: Archive, select: Callable[[Packed], bool] = lambda packed: True
) -> Iterator[tuple[Packed, bytes]]:
    """The code objects that are wanted, with their bytes, in the order in which they lie there."""
    for packed in archive.code:
        if select(packed):
            place = packed.offset, packed.packed_size, packed.size
            yield packed, _opened(source, archive.scheme, place).read_at(0, packed.size)


def wrong(subject: str, reason: str) -> CheckError:
    """The error for what is no sound archive."""
    return CheckError(
        f"not a valid kpack archive: {reason}",
        cause="the file is truncated, damaged, or written by a ROCm that rocwheel does not know",
        next_step="get a fresh copy of the package, or report the version of ROCm that made it",
        subject=subject,
    )


def _header(source: ByteSource) -> tuple[int, _Table]:
    """Where the table begins, and what it says."""
    subject = source.subject
    if source.size < HEADER.size:
        raise wrong(subject, "it is shorter than its header")
    magic, version, begin = HEADER.unpack(source.read_at(0, HEADER.size))
    if magic != MAGIC:
        raise wrong(subject, "it does not start with its magic number")
    if version != VERSION:
        raise wrong(subject, f"it has version {version}; known is {VERSION}")
    if not HEADER.size <= begin < source.size:
        raise wrong(subject, f"its table begins at byte {begin:,}, the file has {source.size:,}")
    if source.size - begin > LARGEST_TABLE:
        raise wrong(subject, f"its table claims {source.size - begin:,} bytes")
    try:
        return begin, _table(Walk(source.read_at(begin, source.size - begin), LONGEST_NAME))
    except MalformedError as error:
        raise wrong(subject, f"its table: {error}") from error


def _table(walk: Walk) -> _Table:
    table = _Table()
    for key in walk.map("the whole", MOST_TARGETS):
        match key:
            case "format_version":
                if (version := walk.count(key)) != VERSION:
                    raise MalformedError(f"it has version {version}; known is {VERSION}")
            case "compression_scheme":
                table.scheme = walk.text(key)
                if table.scheme not in (NONE, ZSTD):
                    raise MalformedError(f"code is packed by {table.scheme[:60]!r}; known are {NONE}, {ZSTD}")
            case "group_name":
                table.group = walk.text(key)
            case "gfx_arches":
                table.targets = [_target(walk.text(key)) for _ in walk.list(key, MOST_TARGETS)]
            case "blobs":
                table.blobs = [_blob(walk) for _ in walk.list(key, MOST_CODE)]
            case "zstd_offset":
                table.frames_at = walk.count(key)
            case "zstd_size":
                table.frames_size = walk.count(key)
            case "toc":
                table.rows = list(_rows(walk))
            case _:
                walk.skip(key)
    return table


def _blob(walk: Walk) -> tuple[int, int]:
    blob = {"offset": 0, "size": 0}
    for key in walk.map("a blob", MOST_TARGETS):
        if key in blob:
            blob[key] = walk.count(key)
        else:
            walk.skip(key)
    return blob["offset"], blob["size"]


def _rows(walk: Walk) -> Iterator[tuple[str, str, int, int | None]]:
    count = 0
    for name in walk.map("toc", MOST_CODE):
        if _CLIMBS.search(name):
            raise MalformedError(f"{name[:100]!r} leads out of the folder that it should lie in")
        for target in walk.map(f"toc of {name[:100]}", MOST_TARGETS):
            count += 1
            if count > MOST_CODE:
                raise MalformedError(f"it names more than {MOST_CODE:,} code objects")
            yield name, _target(target), *_place(walk)


def _place(walk: Walk) -> tuple[int, int | None]:
    ordinal = size = None
    for key in walk.map("a code object", MOST_TARGETS):
        match key:
            case "ordinal":
                ordinal = walk.count(key)
            case "original_size":
                size = walk.count(key)
            case _:
                walk.skip(key)
    if ordinal is None:
        raise MalformedError("a code object has no ordinal")
    return ordinal, size


def _target(text: str) -> str:
    """A target with its features in order."""
    if not _TARGET.fullmatch(text):
        raise MalformedError(f"{text[:100]!r} is not a GPU target")
    name, *features = text.split(":")
    return ":".join((name, *sorted(features)))


def _frames(source: ByteSource, table: _Table, table_at: int) -> Iterator[tuple[int, int]]:
    """Offset and size of each zstd frame: their number comes first, and before each its size."""
    position, end = table.frames_at, table.frames_at + table.frames_size
    if position < HEADER.size or end > table_at or table.frames_size < _SIZE.size:
        raise wrong(
            source.subject, f"its code lies at bytes {position:,} to {end:,}, the table at {table_at:,}"
        )
    (count,) = _SIZE.unpack(source.read_at(position, _SIZE.size))
    if count > MOST_CODE or count * _SIZE.size > table.frames_size - _SIZE.size:
        raise wrong(source.subject, f"it claims {count:,} code objects in {table.frames_size:,} bytes")
    position += _SIZE.size
    for number in range(count):
        size = _SIZE.unpack(source.read_at(position, _SIZE.size))[0] if position + _SIZE.size <= end else end
        position += _SIZE.size
        if position + size > end:
            raise wrong(source.subject, f"code object {number:,} ends behind all of them")
        yield position, size
        position += size


def _check_places(source: ByteSource, places: Sequence[tuple[int, int]], table_at: int) -> None:
    last = HEADER.size
    for offset, size in sorted(places):
        if offset < last:
            raise wrong(source.subject, f"two code objects overlap at byte {offset:,}")
        last = offset + size
    if last > table_at:
        raise wrong(source.subject, f"its code ends at byte {last:,}, where its table is")


def _placed(source: ByteSource, table: _Table, places: Sequence[tuple[int, int]]) -> Iterator[_Placed]:
    """Where the code of each row of the table lies, and its size unpacked."""
    sizes: dict[int, int] = {}
    for name, target_id, ordinal, original_size in table.rows:
        if ordinal >= len(places):
            raise wrong(source.subject, f"{name} is code object {ordinal:,} of {len(places):,}")
        offset, packed = places[ordinal]
        size = packed if original_size is None and table.scheme == NONE else original_size
        if size is None or (table.scheme == NONE and size != packed):
            raise wrong(source.subject, f"the size of {name} for {target_id} is not right")
        if sizes.setdefault(ordinal, size) != size:
            raise wrong(source.subject, f"code object {ordinal:,} has two sizes")
        yield (offset, packed, size), name, target_id


def _offset(placed: _Placed) -> int:
    return placed[0][0]


def _code(source: ByteSource, scheme: Scheme, placed: Sequence[_Placed], heads: bool) -> Iterator[Packed]:
    """The code with its headers; what several rows name is unpacked once."""
    last, head, header = None, b"", None
    for place, name, target_id in placed:
        offset, packed_size, size = place
        if offset != last:
            code = _opened(source, scheme, place, heads=heads)
            last, head, header = offset, code.read_at(0, min(size, HEADER_SIZE)), None
            if isinstance(code, Unpacking) and not heads:
                code.finish(None)
        target, *features = target_id.split(":")
        row_header = None
        if not target.endswith(_SPIRV):
            row_header = header = header or gpu_header(head, f"{source.subject} ({name}, {target_id})")
            if [header.target, *header.features] != [target, *features]:
                inside = ":".join((header.target, *header.features))
                raise wrong(source.subject, f"{name} for {target_id} is code for {inside}")
        yield Packed(
            name=name,
            target=target,
            features=tuple(features),
            size=size,
            offset=offset,
            packed_size=packed_size,
            header=row_header,
        )


def _opened(
    source: ByteSource, scheme: Scheme, place: tuple[int, int, int], *, heads: bool = False
) -> Unpacking | ByteSource:
    """Code by its offset, its size there, and its size unpacked."""
    offset, packed_size, size = place
    packed = source.window(offset, packed_size)
    if scheme == NONE:
        return packed
    return Unpacking(packed, "zstd", size, padded=False, hashes=False, heads=heads)
