"""A rehearsal in words, for people."""

from __future__ import annotations

from collections.abc import Iterator

from rocwright.rehearsal.result import Rehearsed, RowRehearsed

SHOWN = 8
"""Failures and reasons that are told of a part."""


def lines(told: RowRehearsed) -> Iterator[str]:
    """A row: its word, each component, and each part tried n of m, with the reason for the rest."""
    yield f"{told.row}: {told.word}"
    if told.problem:
        yield f"  {told.problem}"
    for one in told.components:
        yield from _component(one)


def _component(one: Rehearsed) -> Iterator[str]:
    yield f"  {one.component} {one.version}"
    if one.source:
        yield f"    source   {one.source}"
    if one.on:
        yield f"    on       {', '.join(one.on)}"
    for text in one.differs:
        yield f"    differs  {text}"
    for part in one.parts:
        state = f"FAILED {len(part.failed)}, " if part.failed else ""
        label = part.part if part.part == part.name else f"{part.part}: {part.name}"
        yield f"    {label}: {state}tried {part.tried} of {part.all}"
        yield from (f"      failed   {fault.name}: {fault.detail}" for fault in part.failed[:SHOWN])
        if len(part.failed) > SHOWN:
            yield f"      failed   {len(part.failed) - SHOWN} more"
        yield from (f"      not tried  {text}" for text in part.reasons[:SHOWN])
        if len(part.reasons) > SHOWN:
            yield f"      not tried  {len(part.reasons) - SHOWN} more"
