"""One file with bundles taken apart into what is no GPU code and the code objects, and put together again."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode import bundle as offload
from rocwheel.wheels.devicecode.fatbin import BUNDLES, FatBinary
from rocwheel.wheels.elf import Elf
from rocwheel.wheels.parts import BytePart, Joined, bytes_part, pieces, source_part, zeros
from rocwheel.wheels.scratch import Scratch
from rocwheel.wheels.slim.bundles import alignment, packed, plain
from rocwheel.wheels.slim.library import slim_library
from rocwheel.wheels.slim.relink import Renewed, relinked
from rocwheel.wheels.slim.wish import Wish
from rocwheel.wheels.source import ByteSource
from rocwheel.wheels.split.manifest import KEPT_HEAD, Bundle, Span, SplitEntry, SplitLibrary

_NOTHING = Wish(targets=(), covered={}, allow_missing=True, embedded=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """A library without GPU code, its bytes that are in neither, and its code by bundle and entry id."""

    library: SplitLibrary
    neutral: ByteSource
    kept: ByteSource
    code: Mapping[tuple[int, str], ByteSource]


def take_apart(
    source: ByteSource, fat: FatBinary, path: str, kept_path: str, results: Scratch
) -> Apart | None:
    """The pieces of a library; None where it has no code. `kept_path` is where the bytes that stay will lie.

    Raises CheckError where the library cannot be changed without breaking what loads it.
    """
    slim = slim_library(source, _NOTHING, results)
    if slim is None:
        return None
    _check_hosts(fat, path)
    part = results.put(pieces(slim.content))
    code = dict(_code(source, fat, results))
    removed = sorted(_code_ranges(fat.bundles))
    spans = list(_spans(source.size, removed, sorted(_origins(slim.content, source))))
    digest = hashlib.sha256()
    for piece in pieces(source):
        digest.update(piece)
    return Apart(
        library=SplitLibrary(
            path=path,
            size=source.size,
            sha256=digest.hexdigest(),
            kept=kept_path,
            spans=tuple(spans),
            bundles=tuple(_manifest_bundle(index, bundle, code) for index, bundle in enumerate(fat.bundles)),
        ),
        neutral=results.window(part.offset, part.size),
        kept=Joined(
            [
                bytes_part(KEPT_HEAD),
                *(BytePart(source, span.offset, span.size) for span in spans if span.at is None),
            ]
        ),
        code=code,
    )


def is_exact(library: SplitLibrary) -> bool:
    """Whether all pieces together give the original's bytes; else code comes to lie there packed anew."""
    return not any(bundle.compression for bundle in library.bundles)


def put_together(
    library: SplitLibrary,
    neutral: ByteSource,
    retained: ByteSource,
    code: Mapping[tuple[int, str], ByteSource],
    results: Scratch,
) -> ByteSource:
    """The library with the code that there is, as slim would have made it of the original.

    With all of it, and bundles that are not compressed, it is the original, to the byte.
    Raises CheckError where the pieces do not fit together.
    """
    original = _original(library, neutral, retained, code)
    if is_exact(library) and _all_there(library, code):
        return original
    file = Elf(original)
    sections: dict[int, list[Renewed]] = defaultdict(list)
    for index, bundle in enumerate(library.bundles):
        content = _bundle(original, index, bundle, code, results)
        sections[_section(file, bundle, library)].append(Renewed(offset=bundle.offset, content=content))
    return relinked(file, sections, [])


def _check_hosts(fat: FatBinary, path: str) -> None:
    for bundle in fat.bundles:
        if bundle.compression and any(entry.size for entry in bundle.entries if not entry.target):
            raise CheckError(
                f"{path} has a compressed bundle with content for the host",
                cause="it was assembled by hand; compilers leave that part empty",
                next_step="use `rocwheel slim --gpu GPU FILE` instead, which can make it smaller",
                subject=path,
            )


def _code(
    source: ByteSource, fat: FatBinary, results: Scratch
) -> Iterator[tuple[tuple[int, str], ByteSource]]:
    for index, bundle in enumerate(fat.bundles):
        if not bundle.compression:
            for entry in bundle.code:
                yield (index, entry.id), source.window(bundle.offset + entry.offset, entry.size)
            continue
        for entry, content in offload.contents(source, bundle):
            part = results.put([content])
            yield (index, entry.id), results.window(part.offset, part.size)


def _manifest_bundle(
    index: int, bundle: offload.Bundle, code: Mapping[tuple[int, str], ByteSource]
) -> Bundle:
    return Bundle(
        offset=bundle.offset,
        size=bundle.size,
        compression=bundle.compression,
        version=bundle.version,
        entries=tuple(
            SplitEntry(
                id=entry.id,
                target=entry.target,
                offset=entry.offset,
                size=entry.size,
                sha256=_sha256(code[index, entry.id]) if entry.target else "",
            )
            for entry in bundle.entries
        ),
    )


def _sha256(source: ByteSource) -> str:
    digest = hashlib.sha256()
    for piece in pieces(source):
        digest.update(piece)
    return digest.hexdigest()


def _code_ranges(bundles: Sequence[offload.Bundle]) -> Iterator[tuple[int, int]]:
    """Begin and end of what lies in other wheels."""
    for bundle in bundles:
        if bundle.compression:
            yield bundle.offset, bundle.end
            continue
        for entry in bundle.code:
            yield bundle.offset + entry.offset, bundle.offset + entry.offset + entry.size


def _origins(content: ByteSource, source: ByteSource, position: int = 0) -> Iterator[tuple[int, int, int]]:
    """Offset in `source`, offset in `content` and size of all that the one has of the other."""
    if not isinstance(content, Joined):
        return
    for part in content.parts:
        if part.source is source:
            yield part.offset, position, part.size
        elif part.source is not None:
            end = part.offset + part.size
            for source_offset, content_offset, size in _origins(part.source, source):
                begin, stop = max(content_offset, part.offset), min(content_offset + size, end)
                if begin < stop:
                    yield source_offset + begin - content_offset, position + begin - part.offset, stop - begin
        position += part.size


def _spans(
    size: int, removed: Sequence[tuple[int, int]], origins: Sequence[tuple[int, int, int]]
) -> Iterator[Span]:
    """All bytes of the original but those that are gone, each from the neutral file where that has it."""
    position = 0
    upcoming = iter([*origins, (size, 0, 0)])
    source_offset, content_offset, length = next(upcoming)
    for begin, end in [*removed, (size, size)]:
        while position < begin:
            while source_offset + length <= position and source_offset < size:
                source_offset, content_offset, length = next(upcoming)
            if source_offset > position:
                stop = min(source_offset, begin)
                yield Span(offset=position, size=stop - position)
            else:
                stop = min(source_offset + length, begin)
                yield Span(
                    offset=position, size=stop - position, at=content_offset + position - source_offset
                )
            position = stop
        position = max(position, end)


def _original(
    library: SplitLibrary,
    neutral: ByteSource,
    retained: ByteSource,
    code: Mapping[tuple[int, str], ByteSource],
) -> Joined:
    """The original's layout; zeros where code is that is not there, and where it was packed."""
    parts = sorted([*_frame(library, neutral, retained), *_places(library, code)], key=lambda pair: pair[0])
    position = 0
    for offset, part in parts:
        if offset != position:
            raise _unfit(library)
        position += part.size
    if position != library.size:
        raise _unfit(library)
    return Joined([part for _, part in parts], library.path)


def _frame(
    library: SplitLibrary, neutral: ByteSource, retained: ByteSource
) -> Iterator[tuple[int, BytePart]]:
    """What is no GPU code, and where it lies in the original."""
    position = len(KEPT_HEAD)
    for span in library.spans:
        if span.at is None:
            yield span.offset, source_part(retained.window(position, span.size))
            position += span.size
        else:
            yield span.offset, source_part(neutral.window(span.at, span.size))


def _places(
    library: SplitLibrary, code: Mapping[tuple[int, str], ByteSource]
) -> Iterator[tuple[int, BytePart]]:
    """Where code lies in the original."""
    for index, bundle in enumerate(library.bundles):
        if bundle.compression:
            yield bundle.offset, zeros(bundle.size)
            continue
        for entry in bundle.entries:
            if entry.target:
                content = code.get((index, entry.id))
                yield bundle.offset + entry.offset, source_part(content) if content else zeros(entry.size)


def _bundle(
    original: ByteSource,
    index: int,
    bundle: Bundle,
    code: Mapping[tuple[int, str], ByteSource],
    results: Scratch,
) -> ByteSource:
    """The bundle with the entries that there are, packed as it was."""
    available = [entry for entry in bundle.entries if not entry.target or (index, entry.id) in code]
    if not bundle.compression and len(available) == len(bundle.entries):
        return original.window(bundle.offset, bundle.size)
    entries = [
        (
            entry.id,
            source_part(code[index, entry.id])
            if entry.target
            else BytePart(original, bundle.offset + entry.offset, entry.size),
        )
        for entry in available
    ]
    content = plain(entries, alignment([entry.offset for entry in bundle.entries]))
    return packed(content, bundle.compression, bundle.version, results) if bundle.compression else content


def _all_there(library: SplitLibrary, code: Mapping[tuple[int, str], ByteSource]) -> bool:
    return all(
        (index, entry.id) in code
        for index, bundle in enumerate(library.bundles)
        for entry in bundle.entries
        if entry.target
    )


def _section(file: Elf, bundle: Bundle, library: SplitLibrary) -> int:
    """The number of the section in which the bundle lies."""
    end = bundle.offset + bundle.size
    for section in file.named(BUNDLES):
        if section.offset <= bundle.offset and end <= section.offset + section.size:
            return section.index
    raise _unfit(library)


def _unfit(library: SplitLibrary) -> CheckError:
    return CheckError(
        f"the pieces of {library.path} do not fit together",
        cause="the neutral wheel is damaged, or was changed",
        next_step="get fresh copies of the pieces, or split the wheel again",
        subject=library.path,
    )
