"""Declarative edits and patch series: applied, and an error when one changes nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rocwright import process
from rocwright.errors import PatchError
from rocwright.plan.model import Edit


def apply_edits(tree: Path, edits: Sequence[Edit], subject: str) -> list[str]:
    """Apply all edits in order; gives a line for each. Raises PatchError that names the edit and the file.

    An edit whose number of matches is not the one expected is an error, zero included: nothing is silently
    without effect.
    """
    return [_apply_edit(tree, edit, subject) for edit in edits]


def _apply_edit(tree: Path, edit: Edit, subject: str) -> str:
    path = (tree / edit.file).resolve()
    if not path.is_relative_to(tree.resolve()):
        raise PatchError(
            f"{subject}: the edit of {edit.file} leads out of the source tree",
            cause="its file name is absolute, has .., or goes through a link",
            next_step="correct `file` of the edit in the recipe",
            subject=edit.file,
        )
    try:
        # as bytes: line ends and characters that the edit does not touch stay as they are
        before = path.read_bytes().decode(errors="surrogateescape")
    except (FileNotFoundError, IsADirectoryError) as error:
        raise PatchError(
            f"{subject}: the edit of {edit.file} finds no such file",
            cause="the source is laid out differently in this version",
            next_step=f"correct the edit, or give it a version range (why it is there: {edit.why})",
            subject=edit.file,
        ) from error
    after, count = re.subn(edit.regex, edit.replacement, before, flags=re.MULTILINE)
    if count != edit.expect or after == before:
        raise PatchError(
            f"{subject}: the edit of {edit.file} matches {count} times, {edit.expect} expected"
            if count != edit.expect
            else f"{subject}: the edit of {edit.file} changes nothing",
            cause=f"regex {edit.regex!r} does not fit this version of the file",
            next_step=f"look at the file (rocwright shell), then correct the edit, or limit it to the "
            f"versions that need it (why it is there: {edit.why})",
            subject=edit.file,
        )
    path.write_bytes(after.encode(errors="surrogateescape"))
    return f"edit {edit.file}: {count} changed ({edit.why})"


def apply_series(tree: Path, patches: Sequence[Path], subject: str) -> list[str]:
    """Apply patch files in order with no fuzz; gives a line for each. Raises PatchError."""
    lines = []
    for patch in patches:
        words = ["-p1", "--fuzz=0", "--batch", "--forward", "--no-backup-if-mismatch", "--reject-file=-"]
        done = process.run(["patch", "--directory", tree, *words, "--input", patch.resolve()])
        if not done.ok or "patching file" not in done.stdout:
            raise PatchError(
                f"{subject}: the patch {patch.name} does not apply",
                cause=next(
                    (line for line in done.stdout.splitlines() if "FAILED" in line or "can't" in line), ""
                )
                or "it names no file of this tree",
                detail=done.stdout[-2000:],
                next_step="the source has changed under it: refresh the patch, or limit it to older versions",
                subject=patch.name,
            )
        lines.append(f"patch {patch.name}: {done.stdout.count('patching file')} files changed")
    return lines
