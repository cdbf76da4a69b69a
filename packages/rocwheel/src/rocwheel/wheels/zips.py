"""The directory of a zip file, checked so that every reader of it sees the same members.

Source of the format: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 (layout), 4.4 (fields), 4.5.3 (zip64).
"""

from __future__ import annotations

import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from rocbase.errors import CheckError
from rocbase.files.bounds import WHEELS
from rocwheel.wheels.formats import EMPTY_ZIP_MAGIC, ZIP_MAGIC
from rocwheel.wheels.source import ByteSource, Inflated, Window

STORED, DEFLATED = 0, 8

_END = struct.Struct("<4sHHHHIIH")
_LOCATOR = struct.Struct("<4sIQI")
_END64 = struct.Struct("<4sQHHIIQQQQ")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_LONGEST_COMMENT = 0xFFFF
_MAX16, _MAX32 = 0xFFFF, 0xFFFFFFFF
_ENCRYPTED, _SIZES_FOLLOW, _UTF8 = 0x1, 0x8, 0x800
_ZIP64_EXTRA = 1
_UNIX = 3
_HEAD_PACKED = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipMember:
    """One file of a zip: where its data begin in the archive, both sizes in bytes, how it is packed."""

    path: str
    mode: int
    method: int
    crc: int
    offset: int
    packed_size: int
    size: int

    def packed(self, archive: ByteSource) -> ByteSource:
        """Its bytes as they lie in the archive."""
        return Window(archive, self.offset, self.packed_size, self.path)

    def head(self, archive: ByteSource, count: int) -> bytes:
        """Its first bytes, at most `count`."""
        count = min(count, self.size)
        if self.method == DEFLATED:
            packed = archive.read_at(self.offset, min(self.packed_size, _HEAD_PACKED))
            try:
                head = zlib.decompressobj(-15).decompress(packed, count)
            except zlib.error as error:
                raise _wrong(archive, f"{self.path} cannot be decompressed: {error}") from error
            if len(head) == count:
                return head
        return self.open(archive).read_at(0, count)

    def open(self, archive: ByteSource) -> ByteSource:
        """Its content. Raises CheckError where it is packed in a way that wheels do not allow."""
        match self.method:
            case 0 if self.size == self.packed_size:
                return self.packed(archive)
            case 8:
                return Inflated(self.packed(archive), self.size, self.crc, self.path)
            case 0:
                raise _wrong(archive, f"{self.path} is stored uncompressed, but has two sizes")
            case _:
                raise _wrong(archive, f"{self.path} is compressed by method {self.method}, not by deflate")


def zip_members(archive: ByteSource) -> list[ZipMember]:
    """The files of a zip in the order of its directory.

    Raises CheckError where it is damaged, or where two readers could take it for different things: names
    that come twice, absolute or upward paths, links, members that overlap, a directory and a member that
    contradict each other, encryption.
    """
    begin, size, count = _directory(archive)
    directory = archive.read_at(begin, size)
    members = []
    spans = []
    names: set[str] = set()
    position = 0
    for _ in range(count):
        if position + _CENTRAL.size > size:
            raise _wrong(archive, "its directory is truncated")
        fields = _CENTRAL.unpack_from(directory, position)
        (
            magic,
            made_by,
            _,
            flags,
            method,
            _,
            _,
            crc,
            packed,
            unpacked,
            n,
            extra_n,
            comment_n,
            disk,
            _,
            attr,
            local,
        ) = fields
        if magic != b"PK\x01\x02":
            raise _wrong(archive, "its directory is damaged")
        position += _CENTRAL.size
        raw_name, extra = directory[position : position + n], directory[position + n : position + n + extra_n]
        position += n + extra_n + comment_n
        if position > size:
            raise _wrong(archive, "its directory is truncated")
        unpacked, packed, local, disk = _wide(archive, extra, unpacked, packed, local, disk)
        name = _name(archive, raw_name, flags)
        mode = attr >> 16 if made_by >> 8 == _UNIX else 0
        if flags & _ENCRYPTED:
            raise _wrong(archive, f"{name} is encrypted")
        if disk:
            raise _wrong(archive, f"{name} is on another disk of a split zip")
        if name in names:
            raise _wrong(archive, f"it holds {name} twice")
        names.add(name)
        declared = (crc, packed, unpacked) if not flags & _SIZES_FOLLOW else None
        offset = _data_offset(archive, local, raw_name, method, declared, begin)
        if offset + packed > begin:
            raise _wrong(archive, f"{name} overlaps the directory")
        spans.append((local, offset + packed, name))
        if name.endswith("/"):
            if unpacked or packed > 2:
                raise _wrong(archive, f"the folder {name} has content")
            continue
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise _wrong(archive, f"{name} is a link or device, not a file")
        members.append(
            ZipMember(
                path=name,
                mode=stat.S_IMODE(mode),
                method=method,
                crc=crc,
                offset=offset,
                packed_size=packed,
                size=unpacked,
            )
        )
    if position != size:
        raise _wrong(archive, "its directory has more entries than it declares")
    _check_apart(archive, spans)
    return members


def _directory(archive: ByteSource) -> tuple[int, int, int]:
    """Where the directory begins, its size, and the number of members."""
    tail_size = min(archive.size, _LONGEST_COMMENT + _END.size + _LOCATOR.size)
    base = archive.size - tail_size
    tail = archive.read_at(base, tail_size)
    position = tail.rfind(EMPTY_ZIP_MAGIC, 0, max(0, len(tail) - _END.size + 4))
    if position < 0:
        raise _wrong(archive, "it has no directory")
    _, disk, first_disk, on_disk, count, size, begin, comment = _END.unpack_from(tail, position)
    if position + _END.size + comment != len(tail):
        raise _wrong(archive, "there is data after its end")
    end = base + position
    if position >= _LOCATOR.size and tail[position - _LOCATOR.size :].startswith(b"PK\x06\x07"):
        _, _, end64, disks = _LOCATOR.unpack_from(tail, position - _LOCATOR.size)
        wide = _END64.unpack(archive.read_at(end64, _END64.size))
        magic, record, _, _, disk64, first64, on_disk64, count64, size64, begin64 = wide
        narrow = ((count, count64, _MAX16), (size, size64, _MAX32), (begin, begin64, _MAX32))
        if magic != b"PK\x06\x06" or disks > 1 or disk64 or first64 or on_disk64 != count64:
            raise _wrong(archive, "its zip64 end record is damaged")
        if any(field not in (field64, zip64_marker) for field, field64, zip64_marker in narrow):
            raise _wrong(archive, "its two end records contradict each other")
        if end64 + 12 + record != end - _LOCATOR.size:
            raise _wrong(archive, "its zip64 end record is in the wrong place")
        end, count, size, begin = end64, count64, size64, begin64
    elif disk or first_disk or on_disk != count:
        raise _wrong(archive, "it is a split zip")
    if begin + size != end:
        raise _wrong(archive, "its directory is in the wrong place")
    if count > WHEELS.members:
        raise _wrong(archive, f"it claims {count:,} members")
    return begin, size, count


def _wide(archive: ByteSource, extra: bytes, *narrow: int) -> Iterator[int]:
    """Sizes, offset and disk, each from the zip64 field where the narrow one says so."""
    wide = b""
    position = 0
    while position + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, position)
        if position + 4 + size > len(extra):
            raise _wrong(archive, "an extra field is truncated")
        if kind == _ZIP64_EXTRA:
            wide = extra[position + 4 : position + 4 + size]
        position += 4 + size
    for value, width in zip(narrow, (8, 8, 8, 4), strict=True):
        if value != (_MAX32 if width == 8 else _MAX16):
            yield value
            continue
        if len(wide) < width:
            raise _wrong(archive, "a zip64 field is missing")
        yield int.from_bytes(wide[:width], "little")
        wide = wide[width:]


def _name(archive: ByteSource, raw: bytes, flags: int) -> str:
    try:
        name = raw.decode("utf-8" if flags & _UTF8 else "cp437")
    except UnicodeDecodeError as error:
        raise _wrong(archive, f"a name is not UTF-8: {raw[:80]!r}") from error
    path = PurePosixPath(name)
    plain = name.removesuffix("/")
    if not plain or path.is_absolute() or ".." in path.parts or str(path) != plain or _odd(name):
        raise _wrong(archive, f"a member's name is {name[:200]!r}, which is not a plain relative path")
    return name


def _odd(name: str) -> bool:
    return "\\" in name or not name.isprintable() or (len(name) > 1 and name[1] == ":")


def _data_offset(
    archive: ByteSource,
    local: int,
    raw_name: bytes,
    method: int,
    declared: tuple[int, int, int] | None,
    end: int,
) -> int:
    """Where a member's data begin; what its own header says must be what the directory says."""
    if local + _LOCAL.size > end:
        raise _wrong(archive, "a member lies outside the file")
    head = archive.read_at(local, min(_LOCAL.size + len(raw_name), end - local))
    magic, _, _, local_method, _, _, crc, packed, size, n, extra_n = _LOCAL.unpack_from(head)
    agree = declared is None or all(
        field in (expected, _MAX32) for field, expected in zip((crc, packed, size), declared, strict=True)
    )
    if (magic, local_method, n, head[_LOCAL.size :], agree) != (
        ZIP_MAGIC,
        method,
        len(raw_name),
        raw_name,
        True,
    ):
        raise _wrong(archive, f"its directory and the member {raw_name[:200]!r} contradict each other")
    return local + len(head) + int(extra_n)


def _check_apart(archive: ByteSource, spans: list[tuple[int, int, str]]) -> None:
    end, previous = 0, ""
    for begin, next_end, name in sorted(spans):
        if begin < end:
            raise _wrong(archive, f"{previous} and {name} overlap")
        end, previous = next_end, name


def _wrong(archive: ByteSource, reason: str) -> CheckError:
    return CheckError(
        f"cannot read {archive.subject} as a wheel: {reason}",
        cause="the file is truncated, damaged, not a zip, or deliberately malformed",
        next_step="build the file again, or get a fresh copy",
        subject=archive.subject,
    )
