"""One program or library with only the GPU code that is needed."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rocwheel.wheels.choose import ProcessorCode, Target, needed
from rocwheel.wheels.devicecode.bundle import Bundle, Compression
from rocwheel.wheels.devicecode.embedded import Embedded
from rocwheel.wheels.devicecode.fatbin import BUNDLES, fat_binary
from rocwheel.wheels.elf import Elf
from rocwheel.wheels.parts import BytePart, Joined, replaced, source_part, zeros
from rocwheel.wheels.scratch import Scratch
from rocwheel.wheels.slim.bundles import rebuilt
from rocwheel.wheels.slim.place import aligned
from rocwheel.wheels.slim.relink import Renewed, debug_sections, relinked
from rocwheel.wheels.slim.wish import Wish, tell_missing
from rocwheel.wheels.source import ByteSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Slimmed:
    """A file's new content, with the bytes of code that stayed and that went, by target."""

    content: ByteSource
    stayed: Mapping[str, int]
    went: Mapping[str, int]
    missing: tuple[str, ...] = ()
    """Wanted targets that not every bundle has code for."""

    debug: int = 0
    """Bytes of debug sections that went."""

    left: str = ""
    """What code was left as it is, and why."""

    changed: bool = True
    """Whether the content is another than before; else there is only a word about what was left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decided:
    """What becomes of the bundles of one file, in their order."""

    renewed: list[Renewed]
    changed: bool
    stayed: Counter[str]
    went: Counter[str]
    missing: tuple[str, ...]


def slim_library(source: ByteSource, wish: Wish, results: Scratch) -> Slimmed | None:
    """The library without the code that `wish` has no need for; None where nothing of it would change.

    Raises CheckError where a bundle has no code for a wanted target, and where the file cannot be changed
    without breaking what loads it. What is not in the library itself is in `results`.
    """
    fat = fat_binary(source)
    source, inside = in_place(source, fat.embedded if fat and wish.embedded else (), wish, results)
    file = Elf(source)
    dropped = debug_sections(file) if wish.strip else []
    decided = _decide(source, fat.bundles if fat else (), wish, results)
    if not decided.changed and not dropped:
        return _only_in_place(source, decided, inside)
    places = sorted((section.offset, section.index) for section in file.named(BUNDLES) if section.size)
    sections = defaultdict(list)
    for bundle in decided.renewed:
        _, index = places[bisect_right(places, (bundle.offset, len(file.sections))) - 1]
        sections[index].append(bundle)
    debug = sum(section.size for section in dropped)
    return _with(_slimmed(relinked(file, sections, dropped), decided, debug), inside)


def _only_in_place(source: ByteSource, decided: _Decided, inside: InPlace) -> Slimmed | None:
    """What is left where nothing but embedded code became less; None where that did not either."""
    if not inside.changed and not inside.left:
        return None
    return replace(_with(_slimmed(source, decided, 0), inside), changed=inside.changed)


def _with(slimmed: Slimmed, inside: InPlace) -> Slimmed:
    """The same, with what became of embedded code."""
    return replace(
        slimmed,
        stayed=dict(Counter(slimmed.stayed) + inside.stayed),
        went=dict(Counter(slimmed.went) + inside.went),
        missing=tuple(dict.fromkeys((*slimmed.missing, *inside.missing))),
        left=inside.left,
    )


def slim_bundles(source: ByteSource, wish: Wish, results: Scratch) -> Slimmed | None:
    """The same for a file that is nothing but bundles."""
    fat = fat_binary(source)
    assert fat is not None  # it begins as a bundle
    decided = _decide(source, fat.bundles, wish, results)
    if not decided.changed:
        return None
    parts: list[BytePart] = []
    position = 0
    for bundle in decided.renewed:
        padding = -position % aligned(bundle.offset)
        parts += [zeros(padding), source_part(bundle.content)]
        position += padding + bundle.content.size
    return _slimmed(Joined(parts, source.subject), decided, 0)


def _decide(source: ByteSource, bundles: Sequence[Bundle], wish: Wish, results: Scratch) -> _Decided:
    chosen = [choose(bundle, wish) for bundle in bundles]
    missing = tell_missing([lacking for _, lacking in chosen], wish, source.subject)
    renewed = []
    stayed: Counter[str] = Counter()
    went: Counter[str] = Counter()
    changed = False
    for bundle, (retained, _) in zip(bundles, chosen, strict=True):
        packing = _packing(bundle, wish)
        changed = changed or len(retained) < len(bundle.entries) or packing != bundle.compression
        content = rebuilt(source, bundle, retained, packing, results)
        renewed.append(Renewed(offset=bundle.offset, content=content))
        for number, entry in enumerate(bundle.entries):
            if entry.target:
                (stayed if number in retained else went)[entry.target_id] += entry.size
    return _Decided(renewed=renewed, changed=changed, stayed=stayed, went=went, missing=missing)


def _slimmed(content: ByteSource, decided: _Decided, debug: int) -> Slimmed:
    return Slimmed(
        content=content,
        stayed=dict(decided.stayed),
        went=dict(decided.went),
        missing=decided.missing,
        debug=debug,
    )


def _packing(bundle: Bundle, wish: Wish) -> Compression:
    match wish.compress:
        case "keep":
            return bundle.compression
        case "none":
            return ""
        case _:
            return wish.compress


@dataclass(slots=True)
class InPlace:
    """What became of embedded code: bytes by target that stayed and that went, and what was left as it is."""

    changed: bool = False
    stayed: Counter[str] = field(default_factory=Counter)
    went: Counter[str] = field(default_factory=Counter)
    missing: tuple[str, ...] = ()
    left: str = ""


def in_place(
    source: ByteSource, embedded: Sequence[Embedded], wish: Wish, results: Scratch
) -> tuple[ByteSource, InPlace]:
    """The file with less in its embedded bundles.

    Raises CheckError where code for a wanted target is missing.
    """
    outcome = InPlace()
    edits: dict[int, Sequence[BytePart]] = {}
    missing: list[tuple[Target, ...]] = []
    tight = 0
    for place in embedded:
        if place.bundle is None:
            continue
        retained, lacking = choose(place.bundle, wish)
        missing.append(lacking)
        if len(retained) < len(place.bundle.entries):
            content = rebuilt(source, place.bundle, retained, place.bundle.compression, results)
            if content.size <= place.bundle.size and place.bundle.version != 1:
                edits[place.offset] = [source_part(content), zeros(place.bundle.size - content.size)]
            else:
                retained = frozenset(range(len(place.bundle.entries)))
                tight += 1
        for number, entry in enumerate(place.bundle.entries):
            if entry.target:
                (outcome.stayed if number in retained else outcome.went)[entry.target_id] += entry.size
    outcome.missing = tell_missing(missing, wish, source.subject)
    outcome.changed = bool(edits)
    alone = [place.code for place in embedded if place.code is not None]
    needed_numbers, _ = needed(
        [ProcessorCode({code.target}, code.features) for code in alone], wish.targets, wish.covered
    )
    outcome.left = "; ".join(_notes(tight, len(alone) - len(needed_numbers)))
    return replaced(source, edits) if edits else source, outcome


def _notes(tight: int, alone: int) -> list[str]:
    notes = [f"{tight:,} embedded bundles could not be written again where they are"] if tight else []
    if alone:
        notes.append(f"{alone:,} embedded code objects for other GPUs: how the program chooses is not known")
    return notes


def choose(bundle: Bundle, wish: Wish) -> tuple[frozenset[int], tuple[Target, ...]]:
    """Numbers of the entries that stay, the host's among them, and the targets without code."""
    code = {
        i: ProcessorCode({entry.target}, entry.features)
        for i, entry in enumerate(bundle.entries)
        if entry.target
    }
    host = frozenset(range(len(bundle.entries))) - code.keys()
    if not code:
        return host, ()
    numbers = list(code)
    retained, missing = needed(list(code.values()), wish.targets, wish.covered)
    return host | {numbers[i] for i in retained}, missing
