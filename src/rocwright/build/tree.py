"""Sources -> the tree to build: unpacked, patched, edited, packed again."""

from __future__ import annotations

from pathlib import Path

from rocwright.build.context import Context, Made
from rocwright.errors import PatchError
from rocwright.patching.edits import apply_edits
from rocwright.patching.series import apply_series
from rocwright.plan.environment import EPOCH
from rocwright.plan.model import TreeAction
from rocwright.sources.archive import pack, unpack

DEBIAN_DIRECTORY = ".debian.tar."


def run_tree(action: TreeAction, context: Context) -> Made:
    """Raises FetchError for an unsafe archive, PatchError where an edit or patch has no effect."""
    tree = context.workspace.source
    notes: list[str] = []
    patches = context.workspace.scratch / "debian"
    for output in context.inputs["source"]:
        # packed by rocwright itself, or handed on by an earlier step: nothing is wrapped around it
        wrapped = not output.filename.endswith(".tar.zst") and output.name != "tree"
        folder = patches if DEBIAN_DIRECTORY in output.filename else tree
        context.on_line(f"unpack {output.filename}")
        unpack(
            context.store.verified(output.sha256),
            folder,
            filename=output.filename,
            subdir=action.subdir if folder is tree else "",
            wrapped=wrapped,
        )
    notes += apply_series(tree, [_patch(patches, name) for name in action.series], "series")
    notes += apply_edits(tree, action.edits, "edits", action.version)
    for note in notes:
        context.on_line(note)
    target = context.workspace.out / "tree.tar.zst"
    pack(tree, target, epoch=EPOCH)
    return Made(outputs={"tree": target}, notes=tuple(notes))


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
