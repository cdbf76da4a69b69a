"""Edits against trees: a row an edit, a column a tree, and nothing written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rocwright.model.edits import TARGETS, Edit
from rocwright.model.versions import version_in
from rocwright.sources.patching.draft import Draft
from rocwright.sources.patching.edits import EditOutcome, State, judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One tree: the version it is taken for ("" where that is not known), where it is from, and a verdict for
    each edit, None where the edit is not for it. `missing` says why there is no tree; `lacking` are programs
    that it calls and no package of the recipe brings, each with the first file and line."""

    version: str
    place: str
    verdicts: tuple[EditOutcome | None, ...] = ()
    missing: str = ""
    lacking: Mapping[str, str] = field(default_factory=dict)

    @property
    def drifted(self) -> list[EditOutcome]:
        """The verdicts that would end a build."""
        return [
            verdict for verdict in self.verdicts if verdict is not None and not _holds(verdict, self.version)
        ]


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
    previous: list[Edit] = []
    verdicts: list[EditOutcome | None] = []
    for edit in (filled(edit, targets) for edit in edits):
        if not asked(edit, version, kind):
            verdicts.append(None)
            continue
        basis = draft
        if any(_exclude(edit, earlier) for earlier in previous):
            basis = Draft(tree, over)
            for earlier in previous:
                if not _exclude(edit, earlier):
                    judge(earlier, basis)
        verdicts.append(judge(edit, basis))
        previous.append(edit)
    return Column(version=version, place=place, verdicts=tuple(verdicts))


def _exclude(first: Edit, second: Edit) -> bool:
    """Whether two edits of a file are for different GPUs."""
    limited = first.file == second.file and first.targets and second.targets
    return bool(limited) and not set(first.targets) & set(second.targets)


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
