"""Edits against trees: a row an edit, a column a tree, and nothing written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rocwright.model.edits import TARGETS, Edit
from rocwright.model.versions import version_in
from rocwright.patching.draft import Draft
from rocwright.patching.edits import EditOutcome, State, judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One tree: the version it is taken for ("" where that is not known), where it is from, and a verdict for
    each edit, None where the edit is not for it. `missing` says why there is no tree."""

    version: str
    place: str
    verdicts: tuple[EditOutcome | None, ...] = ()
    missing: str = ""

    @property
    def drifted(self) -> list[EditOutcome]:
        """The verdicts that would end a build."""
        return [one for one in self.verdicts if one is not None and not _holds(one, self.version)]


def _holds(verdict: EditOutcome, version: str) -> bool:
    absorbed = verdict.edit.absorbed
    if verdict.state is State.ABSORBED:
        # without a version nobody can say whether it was declared
        return not version or bool(absorbed and version_in(version, absorbed))
    return verdict.state is State.APPLIES


def check_tree(
    tree: Path,
    edits: Sequence[Edit],
    targets: Sequence[str],
    *,
    version: str = "",
    place: str = "",
    kind: str = "",
) -> Column:
    """What each edit meets in a tree, one after the other, in memory.

    An edit is judged whatever targets and other components it is limited to; one for other versions, or for
    another kind of place than `kind`, is left out.
    """
    draft = Draft(tree)
    verdicts = [
        judge(_filled(edit, targets), draft) if _asked(edit, version, kind) else None for edit in edits
    ]
    return Column(version=version, place=place, verdicts=tuple(verdicts))


def _asked(edit: Edit, version: str, kind: str) -> bool:
    return (not version or version_in(version, edit.versions)) and (
        not kind or not edit.places or kind in edit.places
    )


def _filled(edit: Edit, targets: Iterable[str]) -> Edit:
    if TARGETS not in (*edit.add, edit.replacement or ""):
        return edit
    return edit.for_targets(edit.targets or tuple(targets))
