"""Embedded bundles with only the code that is needed, each where it was: nothing else knows where they lie.

A program that loads such a bundle itself has its address in its own code, so it cannot move. It becomes
shorter, and zeros follow: the file keeps its size, and a wheel of it becomes smaller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from rocwheel.wheels.choose import ProcessorCode, Target, needed
from rocwheel.wheels.devicecode.bundle import Bundle
from rocwheel.wheels.devicecode.embedded import Embedded
from rocwheel.wheels.parts import BytePart, replaced, source_part, zeros
from rocwheel.wheels.scratch import Scratch
from rocwheel.wheels.slim.bundles import rebuilt
from rocwheel.wheels.slim.wish import Wish, tell_missing
from rocwheel.wheels.source import ByteSource


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
