"""The source that a component of a row is rehearsed with: its own, or that of the nearest release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rocbase.errors import FetchError, NetworkError
from rocwright.catalog.model import Component
from rocwright.catalog.place import Place
from rocwright.model.versions import version_in
from rocwright.plan.resolve.model import LockedComponent
from rocwright.rehearsal.book import Rehearsal

Find = Callable[[Component, str, Sequence[Place]], LockedComponent]
"""Finds the exact source of a version; raises FetchError or NetworkError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactSource:
    """The exact source, and why it is not that of the row's own version; "" where it is."""

    locked: LockedComponent
    instead: str = ""


def source_of(
    component: Component, version: str, base: str, rehearsal: Rehearsal, find: Find
) -> ExactSource | str:
    """The source to rehearse a version with, as it is built on `base`; or why there is none."""
    release = component.released(version)
    places = [*release.for_base(base).places]
    places += [place for place in release.every_place if place not in places]
    reasons: list[str] = []
    try:
        return ExactSource(locked=find(component, version, tuple(places)))
    except (FetchError, NetworkError) as error:
        reasons.append(answers_line(error))
    for nearest in rehearsal.nearest:
        if version_in(version, nearest.versions):
            try:
                source = find(component, nearest.version, (nearest.place,))
            except (FetchError, NetworkError) as error:
                reasons.append(answers_line(error))
                continue
            note = f"{component.name} {nearest.version} stands in for {version} ({nearest.why})"
            return ExactSource(locked=source, instead=note)
    return f"no source of {component.name} {version} can be had here: {reasons[0]}"


def answers_line(error: FetchError | NetworkError) -> str:
    """What the first places answered, in a line."""
    lines = [line.removeprefix("- ") for line in error.detail.splitlines()]
    return "; ".join(lines[:3]) or error.message
