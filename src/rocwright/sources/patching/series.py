"""Patch files of a distribution's source package, applied in order."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from rocbase.errors import PatchError
from rocbase.files.atomic import is_git
from rocbase.processes import run as process
from rocbase.units import count
from rocwright.sources.patching.draft import inside_tree

_TOUCHED = re.compile(r"^patching (?:file|symbolic link) '?(.*?)'?(?: \(.*\))?$", re.MULTILINE)

# A command of ed(1) in a patch: a line of a unified or a context diff begins otherwise.
_ED = re.compile(rb"^\d+(,\d+)?([acdi]|s/\.//)[ \t]*\r?$", re.MULTILINE)

# patch finds no ed for what _ED does not know, such as a script that is indented.
_NO_ED = {"PATH": "/dev/null"}


def lay_packaging(tree: Path, packaging: Path, names: Sequence[str]) -> list[str]:
    """Copy folders of a distribution's packaging to `debian/` in the tree; gives a line for each.

    A name may be a link to another folder of the packaging. Raises PatchError where there is no such folder,
    or where the copy would lie outside of the tree.
    """
    lines = []
    for name in names:
        folder = (packaging / name).resolve()
        if not folder.is_relative_to(packaging.resolve()) or not folder.is_dir():
            raise PatchError(
                f"the source package has no folder debian/{name}",
                cause="the distribution's source package has changed",
                next_step="correct `packaging` in the recipe",
                subject=name,
            )
        # a patch before it can have made `debian` a link
        shutil.copytree(folder, inside_tree(tree, f"debian/{name}"), symlinks=True)
        lines.append(f"folder debian/{name}: taken from the source package")
    return lines


def apply_series(tree: Path, patches: Sequence[Path], subject: str) -> list[str]:
    """Apply patch files in order with no fuzz; gives a line for each. Raises PatchError."""
    lines = []
    for patch in patches:
        if _ED.search(patch.read_bytes()):
            raise PatchError(
                f"{subject}: the patch {patch.name} is refused: it is a script for an editor",
                cause="patch hands such a script to ed, which can run commands",
                next_step="do not use this source; name another source in the recipe",
                subject=patch.name,
            )
        words = ["-p1", "--fuzz=0", "--batch", "--forward", "--no-backup-if-mismatch", "--reject-file=-"]
        program = shutil.which("patch") or "patch"
        completed = process.run(
            [program, "--directory", tree, *words, "--input", patch.resolve()], env=os.environ | _NO_ED
        )
        if not completed.ok or "patching file" not in completed.stdout:
            raise PatchError(
                f"{subject}: the patch {patch.name} does not apply",
                cause=next(
                    (line for line in completed.stdout.splitlines() if "FAILED" in line or "can't" in line),
                    "",
                )
                or "it names files that this tree does not have",
                detail=completed.stdout[-2000:],
                next_step="the source has changed since the patch was made: refresh the patch, or "
                "limit it to older versions",
                subject=patch.name,
            )
        touched = (
            part for match in _TOUCHED.finditer(completed.stdout) for part in PurePosixPath(match[1]).parts
        )
        if any(map(is_git, touched)):
            raise PatchError(
                f"{subject}: the patch {patch.name} is refused: it touches a git folder",
                cause="a source tree has no git folder of its own; what git finds in one it may run",
                next_step="do not use this source; name another source in the recipe",
                subject=patch.name,
            )
        lines.append(f"patch {patch.name}: {count(completed.stdout.count('patching file'), 'file')} changed")
    return lines
