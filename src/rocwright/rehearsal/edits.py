"""The edits of a row, counted against those that were applied in its rehearsal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rocbase.folders.temporary import temporary_folder
from rocwright.execution.tree import unpack_source
from rocwright.model.edits import Edit
from rocwright.model.steps import TreeAction
from rocwright.rehearsal.result import TrialFault, TrialTally
from rocwright.sources.patching.check import check_tree
from rocwright.sources.patching.edits import EditOutcome
from rocwright.sources.patching.series import apply_series, lay_packaging
from rocwright.store.model import Output, Store

NAME = "edits"


def counted(
    required: Sequence[Edit], applied: Sequence[Edit], faults: Sequence[TrialFault], version: str, place: str
) -> TrialTally:
    """What the row requires (`required`), against those that were tried at a version from a kind of place;
    `faults` are those that did not apply."""
    tried = [edit for edit in required if edit in applied]
    skipped = [edit for edit in required if edit not in applied]
    reasons = tuple(dict.fromkeys(f"{edit.subject}: {_why_not(edit, version, place)}" for edit in skipped))
    return TrialTally(
        part="edits",
        name=NAME,
        tried=len(tried),
        all=len(required),
        failed=tuple(faults),
        reasons=reasons,
    )


def _why_not(edit: Edit, version: str, place: str) -> str:
    if not place:
        return "no tree that has the file can be had here"
    if edit.places and place not in edit.places:
        return f"only for the tree of {' or '.join(edit.places)}, and this one is of {place}"
    return "applied after commands that were not run" if edit.phase else f"not for {version} of this tree"


def judged(
    action: TreeAction, sources: Sequence[Output], store: Store, targets: Sequence[str]
) -> list[EditOutcome]:
    """The edits of a tree step that would end it, each with what it met."""
    with temporary_folder("rehearse") as folder:
        tree, patches = Path(folder) / "tree", Path(folder) / "debian"
        unpack_source(action, sources, store, tree, patches)
        apply_series(tree, [patches / "patches" / name for name in action.series], "series")
        lay_packaging(tree, patches, action.packaging)
        column = check_tree(tree, action.edits, targets, version=action.version)
    return column.drifted
