"""Where bundles come to lie within the addresses that they had, and which pages are then free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode.bundle import ALIGNMENT
from rocwheel.wheels.parts import BytePart, source_part, zeros
from rocwheel.wheels.slim.cut import PAGE, Span
from rocwheel.wheels.source import ByteSource

Filling = Mapping[int, ByteSource]
"""What lies at which address; in the order of the addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """A bundle: its address, and what it is to be; `fixed` where nothing is known that points to it."""

    address: int
    content: ByteSource
    fixed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """The addresses of one section; `last` where nothing of its segment lies behind them."""

    begin: int
    end: int
    last: bool


def together(region: Region, bundles: Sequence[Moving], subject: str) -> dict[int, ByteSource]:
    """The bundles moved together, in their order, each as aligned as it was.

    Raises CheckError where they need more room than there was.
    """
    placed: dict[int, ByteSource] = {}
    position = region.begin
    for bundle in bundles:
        address = bundle.address if bundle.fixed else position + -position % aligned(bundle.address)
        end = address + bundle.content.size
        if address < position or end > region.end:
            raise CheckError(
                "the rewritten code does not fit where it was",
                cause="it compresses less well than before, and what follows it in the file cannot move",
                next_step="use --compress keep or --compress zstd",
                subject=subject,
            )
        placed[address] = bundle.content
        position = end
    return placed


def aligned(address: int) -> int:
    """The alignment of something at this address, as far as it can be told."""
    return min(address & -address or ALIGNMENT, ALIGNMENT)


def end_of(region: Region, filling: Filling) -> int:
    """Where the last of what is there ends."""
    return max((address + content.size for address, content in filling.items()), default=region.begin)


def hole(region: Region, begin: int) -> Span | None:
    """What can go of a region from `begin` on: whole pages, or all of it at the end of a segment."""
    if not region.last:
        begin, stop = begin + -begin % PAGE, region.end - region.end % PAGE
    else:
        stop = region.end
    return (begin, stop) if stop - begin >= PAGE else None


def filled(region: Region, filling: Filling) -> list[BytePart]:
    """The region's bytes, zeros where nothing lies."""
    parts = []
    position = region.begin
    for address, content in filling.items():
        parts += [zeros(address - position), source_part(content)]
        position = address + content.size
    return [*parts, zeros(region.end - position)]
