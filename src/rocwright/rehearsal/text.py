"""A rehearsal in words, for people."""

from __future__ import annotations

from collections.abc import Iterator

from rocwright.rehearsal.result import Rehearsed, RowRehearsed

# Failures and reasons that are told of a part.
SHOWN = 8


def lines(report: RowRehearsed) -> Iterator[str]:
    """A row: its word, each component, and each part tried n of m, with the reason for the rest."""
    yield f"{report.row}: {report.word}"
    if report.problem:
        yield f"  {report.problem}"
    for component in report.components:
        yield from _component(component)


def _component(rehearsed: Rehearsed) -> Iterator[str]:
    yield f"  {rehearsed.component} {rehearsed.version}"
    if rehearsed.source:
        yield f"    source   {rehearsed.source}"
    if rehearsed.on:
        yield f"    on       {', '.join(rehearsed.on)}"
    for text in rehearsed.differs:
        yield f"    differs  {text}"
    for part in rehearsed.parts:
        state = f"FAILED {len(part.failed)}, " if part.failed else ""
        label = part.part if part.part == part.name else f"{part.part}: {part.name}"
        yield f"    {label}: {state}tried {part.tried} of {part.all}"
        yield from (f"      failed   {fault.name}: {fault.detail}" for fault in part.failed[:SHOWN])
        if len(part.failed) > SHOWN:
            yield f"      failed   {len(part.failed) - SHOWN} more"
        yield from (f"      not tried  {text}" for text in part.reasons[:SHOWN])
        if len(part.reasons) > SHOWN:
            yield f"      not tried  {len(part.reasons) - SHOWN} more"
