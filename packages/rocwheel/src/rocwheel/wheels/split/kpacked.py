"""A library whose code goes into kpack archives: what is left of it, as AMD's splitter leaves one.

Its bundles give way to the reference, so that the pointers of the wrappers lead there; the wrappers become
those of kpack, with the numbers by which the runtime asks for their code; and the section is called what it
is. Source: ROCm/rocm-systems, shared/kpack/docs/multi_arch_packaging_with_kpack.md, "Binary Conversion".
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode import bundle as offload
from rocwheel.wheels.devicecode import kpack_writer
from rocwheel.wheels.devicecode.fatbin import BUNDLES, WRAPPERS, FatBinary
from rocwheel.wheels.devicecode.kpack_reference import LARGEST, SECTION, WRAPPER_MAGIC, Reference
from rocwheel.wheels.elf import HEADER_SIZE, Elf
from rocwheel.wheels.parts import Joined, bytes_part, replaced
from rocwheel.wheels.scratch import Scratch
from rocwheel.wheels.slim.cut import cannot
from rocwheel.wheels.slim.relink import Renewed, relinked
from rocwheel.wheels.source import ByteSource, MemorySource

_SECTION_SIZE = 64
_WRAPPER_SIZE = 24
_UNUSED_AT = 16
"""Where a wrapper holds the address that one of a bundle has no use for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kpacked:
    """What is left of a library, and its code by target, in the order of its wrappers."""

    content: ByteSource
    code: Mapping[str, Sequence[kpack_writer.KpackCode]]


def reason_to_stay(fat: FatBinary) -> str:
    """Why the code of a library cannot go into archives; "" where it can."""
    if any(wrapper.number is not None for wrapper in fat.wrappers):
        return "part of its code is in kpack archives already"
    if not fat.wrappers or fat.unreached:
        return "it has bundles to which no wrapper leads"
    offsets = {bundle.offset for bundle in fat.bundles}
    if any(wrapper.bundle not in offsets for wrapper in fat.wrappers):
        return "a wrapper leads to no bundle of its own"
    if any(entry.size for bundle in fat.bundles for entry in bundle.entries if not entry.target):
        return "a bundle has content for the host"
    return ""


def into_archives(source: ByteSource, fat: FatBinary, reference: Reference, results: Scratch) -> Kpacked:
    """The library named by `reference`, without its code. Raises CheckError where that cannot be removed."""
    content = MemorySource(kpack_writer.reference(reference))
    if content.size > LARGEST:
        raise CheckError(
            "the reference to its archives would be too long",
            cause=f"the runtime reads {LARGEST:,} bytes of it",
            next_step="give the file a shorter path",
            subject=source.subject,
        )
    file = Elf(source)
    sections: dict[int, list[Renewed]] = defaultdict(list)
    for bundle in fat.bundles:
        index = next(
            section.index
            for section in file.named(BUNDLES)
            if section.offset <= bundle.offset < section.offset + section.size
        )
        sections[index].append(Renewed(offset=bundle.offset, content=content))
    less = relinked(file, sections, [], instead=content)
    by_target: dict[str, list[kpack_writer.KpackCode]] = defaultdict(list)
    for target, code in _code(source, fat, reference, results):
        by_target[target].append(code)
    return Kpacked(content=_marked(less), code=by_target)


def _code(
    source: ByteSource, fat: FatBinary, reference: Reference, results: Scratch
) -> Iterator[tuple[str, kpack_writer.KpackCode]]:
    """The code of each wrapper, by target; wrappers of one bundle have the same."""
    wrappers: dict[int | None, list[int]] = defaultdict(list)
    for number, wrapper in enumerate(fat.wrappers):
        wrappers[wrapper.bundle].append(number)
    for bundle in fat.bundles:
        for entry, content in _entries(source, bundle, results):
            for number in wrappers[bundle.offset]:
                yield (
                    entry.target_id,
                    kpack_writer.KpackCode(
                        name=f"{reference.name}#{number}", target_id=entry.target_id, content=content
                    ),
                )


def _entries(
    source: ByteSource, bundle: offload.Bundle, results: Scratch
) -> Iterator[tuple[offload.BundleEntry, ByteSource]]:
    if not bundle.compression:
        for entry in bundle.code:
            yield entry, source.window(bundle.offset + entry.offset, entry.size)
        return
    for entry, content in offload.contents(source, bundle):
        part = results.put([content])
        yield entry, results.window(part.offset, part.size)


def _marked(source: Joined) -> ByteSource:
    """The library with wrappers of kpack, and the section of bundles called that of the reference."""
    file = Elf(source)
    edits: dict[int, bytes] = {}
    for number, wrapper in enumerate(_wrappers(file)):
        edits[wrapper] = struct.pack("<I", WRAPPER_MAGIC)
        edits[wrapper + _UNUSED_AT] = struct.pack("<Q", number)
    header = source.read_at(0, HEADER_SIZE)
    (table_at,) = struct.unpack_from("<Q", header, 40)
    (index,) = struct.unpack_from("<H", header, 62)
    if index >= len(file.sections):
        raise cannot(source.subject, "it has more sections than its header can count")
    names = file.sections[index]
    text = source.read_at(names.offset, names.size)
    for section in file.named(BUNDLES):
        edits[table_at + section.index * _SECTION_SIZE] = struct.pack("<I", len(text))
    text += SECTION.encode() + b"\0"
    # the names go behind all else, where they have room for one more
    edits[table_at + names.index * _SECTION_SIZE + 24] = struct.pack("<QQ", source.size, len(text))
    marked = replaced(source, {offset: [bytes_part(data)] for offset, data in edits.items()})
    return Joined([*marked.parts, bytes_part(text)], source.subject)


def _wrappers(file: Elf) -> Iterator[int]:
    """Where each wrapper lies in the file."""
    for section in file.named(WRAPPERS):
        end = section.offset + section.size // _WRAPPER_SIZE * _WRAPPER_SIZE
        yield from range(section.offset, end, _WRAPPER_SIZE)
