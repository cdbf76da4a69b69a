"""GPU code that lies anywhere else in a library than where the compiler puts it: a program loads it itself.

It is found by its first bytes, in every section, and read as far as shows that it is code. A library that
only has the words for it (a compiler, a profiler) has none. What is code, and cannot be read, is told.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rocbase.errors import CheckError
from rocwheel.wheels import elf
from rocwheel.wheels.devicecode import bundle as offload
from rocwheel.wheels.devicecode.bundle import Bundle
from rocwheel.wheels.devicecode.bundles import Ahead, read_one
from rocwheel.wheels.devicecode.gpu import HEADER_SIZE, GpuHeader, gpu_header
from rocwheel.wheels.elf import Elf
from rocwheel.wheels.marks import BUNDLE, COMPRESSED
from rocwheel.wheels.source import ByteSource

if TYPE_CHECKING:
    from rocwheel.wheels.pe import Pe
    from rocwheel.wheels.pe import Section as PeSection

MOST_PIECES = 50_000
"""Pieces of code in one file; of tensorflow-rocm's largest library they are some thousand."""

MOST_UNREAD = 20
"""Pieces that cannot be read and are told one by one."""

_ENTRY_ID = (b"host-", b"hip", b"hcc-", b"openmp-")
"""How the id of an entry begins, by which a plain bundle is told from the word for it."""

_LAYOUT = struct.Struct("<QQQIHHHHHH")
"""Of an ELF header from byte 24 on: entry, program headers, section headers, flags, and their sizes."""


class Embedded(NamedTuple):
    """A bundle or code object at `offset` of the file, in the section of that name; `size` is in bytes."""

    section: str
    offset: int
    size: int
    bundle: Bundle | None = None
    code: GpuHeader | None = None


@dataclass(slots=True)
class EmbeddedFindings:
    """What was found, and why some of what was seen cannot be read."""

    code: list[Embedded] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def embedded(
    file: Elf | Pe,
    covered: Sequence[tuple[int, int]],
    *,
    hashes: bool = False,
    heads: bool = False,
    ahead: Ahead | None = None,
) -> EmbeddedFindings:
    """The code in a file's sections but for the spans (offset, size) that are `covered`.

    `hashes` and `heads` are as for `read_bundle`; `ahead` may have read some of it. Raises CheckError for
    more pieces than a real file has.
    """
    read = partial(read_one, hashes=hashes, heads=heads, ahead=ahead)
    findings = EmbeddedFindings()
    names = _Names(file)
    count = 0
    for begin, end in _searched(file, covered):
        position = begin

        def behind() -> int:
            return position  # noqa: B023 - of this round

        for offset in file.source.marks(begin, end, behind):
            if offset < position:
                continue
            try:
                piece, position = _piece(file.source, offset, end, names.section_at(offset), read)
            except CheckError as error:
                piece = None
                if len(findings.unread) < MOST_UNREAD:
                    findings.unread.append(f"at byte {offset:,} ({names.section_at(offset)}) {error.message}")
            if piece is not None:
                findings.code.append(piece)
            count += 1
            if count > MOST_PIECES:
                raise file.wrong(f"more than {MOST_PIECES:,} places in it begin like GPU code")
    return findings


class _Names:
    """The names of sections by where they lie in the file."""

    def __init__(self, file: Elf | Pe) -> None:
        sections = sorted((section.offset, section.name) for section in _with_bytes(file))
        self._offsets = [offset for offset, _ in sections]
        self._names = [name for _, name in sections]

    def section_at(self, offset: int) -> str:
        number = bisect_right(self._offsets, offset) - 1
        return self._names[number] if number >= 0 else ""


def _with_bytes(file: Elf | Pe) -> Iterator[elf.Section | PeSection]:
    for section in file.sections:
        if section.size and (not isinstance(section, elf.Section) or section.has_bytes):
            yield section


def _searched(file: Elf | Pe, covered: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The bytes of all sections but the known ones, each once however often sections overlap."""
    spans = [
        (section.offset, min(section.offset + section.size, file.source.size))
        for section in _with_bytes(file)
    ]
    skipped = sorted((offset, offset + size) for offset, size in covered)
    for begin, end in _joined(spans):
        position = begin
        for first, last in [*skipped, (end, end)]:
            if position < min(first, end):
                yield position, min(first, end)
            position = max(position, last)


def _joined(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    last: tuple[int, int] | None = None
    for begin, end in sorted(spans):
        if last and begin <= last[1]:
            last = last[0], max(last[1], end)
            continue
        if last:
            yield last
        last = begin, end
    if last:
        yield last


def _piece(
    source: ByteSource, offset: int, end: int, section: str, read: Callable[[ByteSource, int, int], Bundle]
) -> tuple[Embedded | None, int]:
    """The code at a mark, and where to look on; None where it is but the word for it.

    Raises CheckError where it is code that cannot be read.
    """
    head = source.read_at(offset, min(HEADER_SIZE, end - offset))
    if not head.startswith((BUNDLE, COMPRESSED)):
        return _code_object(source, offset, end, section, head)
    if not (offload.is_packed(source, offset, end) if head.startswith(COMPRESSED) else _is_plain(head)):
        return None, offset + 1
    bundle = read(source, offset, end)
    # version 1 does not say where it ends
    behind = offset + bundle.header_size if bundle.version == 1 else bundle.end
    if not bundle.code:
        return None, behind
    return Embedded(section=section, offset=offset, size=bundle.size, bundle=bundle), behind


def _is_plain(head: bytes) -> bool:
    """Whether entries follow the word: a number of them, and the first one's id."""
    count = int.from_bytes(head[24:32], "little")
    return 0 < count <= offload.MOST_ENTRIES and head[56:].startswith(_ENTRY_ID)


def _code_object(
    source: ByteSource, offset: int, end: int, section: str, head: bytes
) -> tuple[Embedded | None, int]:
    if len(head) < HEADER_SIZE or int.from_bytes(head[18:20], "little") != 224:
        return None, offset + 1
    size = _elf_size(source, offset, head, end)
    code = gpu_header(head, source.subject)
    return Embedded(section=section, offset=offset, size=size, code=code), offset + size


def _elf_size(source: ByteSource, start: int, head: bytes, end: int) -> int:
    """How long an ELF file is: its tables lie at its end. Raises CheckError where it is cut short."""
    _, segments_at, sections_at, _, _, segment_size, segments, section_size, sections, _ = (
        _LAYOUT.unpack_from(head, 24)
    )
    size: int = max(HEADER_SIZE, segments_at + segment_size * segments, sections_at + section_size * sections)
    if start + size > end:
        raise CheckError(
            f"a code object of {size:,} bytes is cut short",
            cause="the file is damaged",
            next_step="get a fresh copy",
            subject=source.subject,
        )
    if segments and segment_size == 56:
        table = source.read_at(start + segments_at, 56 * segments)
        for row in range(segments):
            offset, file_size = struct.unpack_from("<Q16xQ", table, 56 * row + 8)
            if start + offset + file_size <= end:
                size = max(size, offset + file_size)
    return size
