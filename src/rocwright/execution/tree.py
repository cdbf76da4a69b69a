"""Sources -> the tree to build: unpacked, patched, edited, packed again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rocbase.errors import PatchError
from rocwright.execution.context import ActionResult, Context
from rocwright.model.step_environment import EPOCH
from rocwright.model.steps import TreeAction
from rocwright.sources.archive import left_out, pack, unpack
from rocwright.sources.patching.commits import EDITS, PREPARED, PREPARED_EDITS, UPSTREAM, commit_id, tree_id
from rocwright.sources.patching.edits import apply_edits
from rocwright.sources.patching.series import apply_series, lay_packaging
from rocwright.store.model import Output, Store, verified

DEBIAN_DIRECTORY = ".debian.tar."


def run_tree(action: TreeAction, context: Context) -> ActionResult:
    """Raises FetchError for an unsafe archive, PatchError where an edit or patch has no effect."""
    tree = context.workspace.source
    patches = context.workspace.scratch / "debian"
    sources = context.inputs["source"]
    for output in sources:
        context.on_line(f"unpack {output.filename}")
    for line in unpack_source(action, sources, context.store, tree, patches):
        context.on_line(line)
    later = any(output.name == "tree" for output in sources)
    commits = {_first(later): commit_id(tree_id(tree), context.parent, _first(later))}
    notes = apply_series(tree, [_patch(patches, name) for name in action.series], "series")
    notes += lay_packaging(tree, patches, action.packaging)
    notes += apply_edits(tree, action.edits, "edits", action.version)
    if notes:
        message = PREPARED_EDITS if later else EDITS
        commits[message] = commit_id(tree_id(tree), commits[_first(later)], message)
    for note in [*notes, *(f"git {commit} {message}" for message, commit in commits.items())]:
        context.on_line(note)
    target = context.workspace.out / "tree.tar.zst"
    content = pack(tree, target, epoch=EPOCH)
    return ActionResult(
        outputs={"tree": target}, contents={"tree": content}, notes=tuple(notes), commits=commits
    )


def _first(later: bool) -> str:
    return PREPARED if later else UPSTREAM


def unpack_source(
    action: TreeAction, sources: Sequence[Output], store: Store, tree: Path, patches: Path
) -> list[str]:
    """Unpack a tree step's inputs: upstream's source into `tree`, a distribution's patches into `patches`.

    Gives a line for what is left out.
    """
    notices: list[str] = []
    for output in sources:
        # packed by rocwright itself, or handed on by an earlier step: nothing is wrapped around it
        wrapped = not output.filename.endswith(".tar.zst") and output.name != "tree"
        folder = patches if DEBIAN_DIRECTORY in output.filename else tree
        dropped = unpack(
            verified(store, output.sha256),
            folder,
            filename=output.filename,
            subdir=action.subdir if folder is tree else "",
            wrapped=wrapped,
        )
        notices += left_out(output.filename, dropped)
    return notices


def _patch(folder: Path, name: str) -> Path:
    path = folder / "patches" / name
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise PatchError(
            f"the source has no patch {name}",
            cause="the distribution's source package has changed",
            next_step="correct `series` in the recipe",
            subject=name,
        )
    return path
