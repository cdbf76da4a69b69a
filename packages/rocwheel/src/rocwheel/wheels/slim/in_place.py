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
from rocwheel.wheels.parts import BytePart, replaced, whole, zeros
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
    found = InPlace()
    edits: dict[int, Sequence[BytePart]] = {}
    missing: list[tuple[Target, ...]] = []
    tight = 0
    for one in embedded:
        if one.bundle is None:
            continue
        kept, lacking = choose(one.bundle, wish)
        missing.append(lacking)
        if len(kept) < len(one.bundle.entries):
            content = rebuilt(source, one.bundle, kept, one.bundle.compression, results)
            if content.size <= one.bundle.size and one.bundle.version != 1:
                edits[one.offset] = [whole(content), zeros(one.bundle.size - content.size)]
            else:
                kept = frozenset(range(len(one.bundle.entries)))
                tight += 1
        for number, entry in enumerate(one.bundle.entries):
            if entry.target:
                (found.stayed if number in kept else found.went)[entry.target_id] += entry.size
    found.missing = tell_missing(missing, wish, source.subject)
    found.changed = bool(edits)
    alone = [one.code for one in embedded if one.code is not None]
    others, _ = needed(
        [ProcessorCode({one.target}, one.features) for one in alone], wish.targets, wish.covered
    )
    found.left = "; ".join(_left(tight, len(alone) - len(others)))
    return replaced(source, edits) if edits else source, found


def _left(tight: int, alone: int) -> list[str]:
    told = [f"{tight:,} embedded bundles could not be written again where they are"] if tight else []
    if alone:
        told.append(f"{alone:,} embedded code objects for other GPUs: how the program chooses is not known")
    return told


def choose(bundle: Bundle, wish: Wish) -> tuple[frozenset[int], tuple[Target, ...]]:
    """Numbers of the entries that stay, the host's among them, and the targets without code."""
    code = {
        i: ProcessorCode({one.target}, one.features) for i, one in enumerate(bundle.entries) if one.target
    }
    host = frozenset(range(len(bundle.entries))) - code.keys()
    if not code:
        return host, ()
    numbers = list(code)
    kept, missing = needed(list(code.values()), wish.targets, wish.covered)
    return host | {numbers[i] for i in kept}, missing
