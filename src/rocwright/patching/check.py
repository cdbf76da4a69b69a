"""Edits against trees: a row an edit, a column a tree, and nothing written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    over: Mapping[Path, bytes | None] | None = None,
) -> Column:
    """What each edit meets in a tree, one after the other, in memory.

    An edit is judged whatever targets and other components it is limited to, and without those before it that
    no build has together with it; one for other versions, or for another kind of place than `kind`, is left
    out. `over` are files that stand in the place of the tree's (None: the file is gone).
    """
    draft = Draft(tree, over)
    before: list[Edit] = []
    verdicts: list[EditOutcome | None] = []
    for edit in (filled(one, targets) for one in edits):
        if not asked(edit, version, kind):
            verdicts.append(None)
            continue
        on = draft
        if any(_exclude(edit, one) for one in before):
            on = Draft(tree, over)
            for one in before:
                if not _exclude(edit, one):
                    judge(one, on)
        verdicts.append(judge(edit, on))
        before.append(edit)
    return Column(version=version, place=place, verdicts=tuple(verdicts))


def _exclude(one: Edit, other: Edit) -> bool:
    """Whether two edits of a file are for different GPUs."""
    limited = one.file == other.file and one.targets and other.targets
    return bool(limited) and not set(one.targets) & set(other.targets)


def asked(edit: Edit, version: str, kind: str) -> bool:
    """Whether an edit is for a version ("": any) of a kind of place ("": any)."""
    return (not version or version_in(version, edit.versions)) and (
        not kind or not edit.places or kind in edit.places
    )


def filled(edit: Edit, targets: Iterable[str]) -> Edit:
    """The edit with the targets in it, where it asks for them."""
    if TARGETS not in (*edit.add, edit.replacement or ""):
        return edit
    return edit.for_targets(edit.targets or tuple(targets))
