"""Which edits of a recipe hold for what a lock has chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rocwright.model.edits import Edit
from rocwright.model.versions import version_in


def edits_for(
    edits: Iterable[Edit],
    version: str,
    targets: tuple[str, ...],
    place: str,
    phase: str = "",
    versions: Mapping[str, str] | None = None,
) -> tuple[Edit, ...]:
    """The edits of a phase that hold for this version, these targets, this kind of source place and these
    versions of other components, with `{targets}` filled in."""
    return tuple(
        edit.for_targets(targets)
        for edit in edits_as_written(edits, version, place, versions or {})
        if edit.phase == phase and (not edit.targets or not set(targets).isdisjoint(edit.targets))
    )


def edits_as_written(
    edits: Iterable[Edit], version: str, place: str, versions: Mapping[str, str]
) -> Iterator[Edit]:
    """The edits that hold for a version, a kind of source place and other components, for whatever GPU."""
    for edit in edits:
        if (
            version_in(version, edit.versions)
            and (not edit.places or place in edit.places)
            and all(
                name in versions and version_in(versions[name], specifier)
                for name, specifier in edit.beside.items()
            )
        ):
            yield edit
