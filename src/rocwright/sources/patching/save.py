"""Changes made in a shell's tree, kept as edits in a catalog folder of the user's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import tomlkit

from rocbase.errors import InputError
from rocbase.files.atomic import write_atomic
from rocbase.folders.links import through_no_link
from rocwright.sources.patching.diffs import parse_diff
from rocwright.sources.patching.history import UserCommit

LONGEST_NAME = 50


def save_changes(
    changes: Sequence[UserCommit], component: str, version: str, phase: str, folder: Path, carried: str
) -> list[Path]:
    """Write each change as a diff under `folder`/patches, and an edit for it in edits/COMPONENT.toml.

    `carried` is the text of the component's edits in the catalog below: a file of the user's own stands in
    its place, so it begins with them. Raises PatchError, before anything is written, for a change that is no
    unified diff of text, InputError where there is none or a place of them is a link.
    """
    if not changes:
        raise InputError(
            f"nothing was changed in the tree of {component}",
            cause="there is no commit after those of the build, and no --message for uncommitted changes",
            next_step="change files in rocwright shell STEP and commit them, or give --message to "
            "save uncommitted changes",
        )
    for change in changes:
        parse_diff(change.diff, change.subject)
    patches = through_no_link(folder / "patches" / component, folder)
    numbers = [int(path.name[:4]) for path in patches.glob("[0-9][0-9][0-9][0-9]-*.patch")]
    written = []
    edits = through_no_link(folder / "edits" / f"{component}.toml", folder)
    text = edits.read_text(encoding="utf-8") if edits.is_file() else carried
    for number, change in enumerate(changes, max(numbers, default=0) + 1):
        path = patches / f"{number:04}-{_slug(change.subject)}.patch"
        write_atomic(path, change.diff)
        written.append(path)
        text = f"{text.rstrip()}\n\n{_edit(change, path.relative_to(folder), version, phase)}".lstrip()
    write_atomic(edits, text)
    return [*written, edits]


def _slug(subject: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", subject.lower())[:LONGEST_NAME].strip("-") or "change"


def _edit(change: UserCommit, path: Path, version: str, phase: str) -> str:
    fields = {"diff": str(path), "for": f"=={version}", "phase": phase, "why": change.subject}
    fields["source"] = f"changed by hand in the tree of {version}"
    table = tomlkit.table()
    table.update({name: value for name, value in fields.items() if value})
    array = tomlkit.aot()
    array.append(table)
    return tomlkit.dumps({"edit": array})
