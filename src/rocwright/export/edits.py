"""The edits of a tree as a program of their own: the very functions that `build` edits with, in one file."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Sequence
from types import ModuleType

from rocbase.files.atomic import is_git
from rocwright.export.model import ExportFile, lines_of
from rocwright.model.edits import Edit, EditKind
from rocwright.sources.patching import diffs, found, kinds, lists, rules

PROGRAM = "edits/apply.py"

_HEAD = '''\
"""Apply the edits of a JSON file to a tree: all of them, or none.   usage: apply.py EDITS.json TREE

Exported by rocwright, which edits with these same functions. Needs Python 3.10 or newer, and ast-grep-py for
edits of the kind "rule". An edit that matches fewer or more places than it expects ends with status 1.
"""

from __future__ import annotations

import enum
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path, PurePosixPath
from types import SimpleNamespace


class PatchError(Exception):
    def __init__(self, what, *, cause="", next_step="", detail="", subject=""):
        super().__init__(f"{what}: {cause}")


InputError = PatchError
'''

_TAIL = """

def main(edits_file, tree):
    tree, drafts = Path(tree), {}

    def read(name):
        path = tree / name
        if name not in drafts:
            inside = path.resolve().is_relative_to(tree.resolve())
            if not inside or any(map(is_git, Path(name).parts)):
                raise PatchError(f"{name} points outside the tree, or into its repository")
            drafts[name] = (path.read_bytes().decode() if path.is_file() else None, False)
        return drafts[name][0]

    for data in json.loads(Path(edits_file).read_text()):
        data["rule"] = SimpleNamespace(**data["rule"]) if data["rule"] else None
        edit = SimpleNamespace(**{**data, "kind": EditKind(data["kind"])})
        if edit.kind is EditKind.DIFF:
            apply_diff(edit, read, drafts)
        else:
            apply_text(edit, read, drafts)
        print(f"edit {edit.subject}: {edit.why}")
    for name, (text, executable) in drafts.items():
        path = tree / name
        if text is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != text.encode():
            path.write_bytes(text.encode())
        if executable:
            path.chmod(0o755)


def apply_text(edit, read, drafts):
    ends = "\\r\\n" if edit.line_ends == "crlf" else "\\n"
    text = read(edit.file)
    if text is None:
        raise PatchError(f"{edit.file} is not there")
    text = text.replace(ends, "\\n")
    place = find(edit, text)
    if not place.changes and (place.there or (edit.absent and edit.absent not in text)):
        if edit.may_be_absorbed:
            return
        raise PatchError(f"{edit.file} has this edit already")
    if len(place.changes) != edit.expect:
        raise PatchError(
            f"{edit.file}: {place.wanted} matches {len(place.changes)} times, {edit.expect} expected"
        )
    after = changed(text, place.changes)
    if after == text or derived_marker(edit) not in after:
        raise PatchError(f"the edit of {edit.file} does not do what it says")
    drafts[edit.file] = (after.replace("\\n", ends), drafts[edit.file][1])


def apply_diff(edit, read, drafts):
    ends = "\\r\\n" if edit.line_ends == "crlf" else "\\n"
    done = 0
    for part in parse_diff(edit.patch, edit.diff):
        before = read(part.name)
        if before is None and NOWHERE not in (part.old, part.new):
            raise PatchError(f"{part.name} is not there")
        applied = apply_hunks(part, None if before is None else before.replace(ends, "\\n"))
        if applied.failed is not None:
            raise PatchError(f"{edit.diff} does not apply to {part.name}")
        done += applied.changed
        text = applied.text
        drafts[part.name] = (None if text is None else text.replace("\\n", ends), part.executable)
    if not done and not edit.may_be_absorbed:
        raise PatchError(f"the tree has {edit.diff} already")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (PatchError, OSError, UnicodeDecodeError) as error:
        sys.exit(f"error: {error}")
"""


def program() -> ExportFile:
    """The program, made of the modules that find and change places in texts."""
    kind = "\n\nclass EditKind(str, enum.Enum):\n" + "".join(
        f"    {kind.name} = {kind.value!r}\n" for kind in EditKind
    )
    bodies = [inspect.getsource(is_git), *(_body(module) for module in (found, lists, rules, kinds, diffs))]
    return ExportFile("\n\n".join([_HEAD + kind, *bodies]).encode() + _TAIL.encode(), executable=True)


def _body(module: ModuleType) -> str:
    """A module's source without its docstring and imports."""
    source = inspect.getsource(module)
    lines = source.splitlines()
    for node in ast.parse(source).body:
        head = isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        )
        docstring = isinstance(node, ast.Expr) and node.lineno == 1
        if head or docstring:
            assert node.end_lineno is not None
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return "\n".join(lines).strip("\n")


def edits_file(edits: Sequence[Edit], absorbed: Sequence[bool]) -> ExportFile:
    """The edits as JSON for the program; `absorbed` says which of them may find their work done."""
    rows = [
        edit.model_dump(mode="json", exclude={"versions", "places", "targets", "beside", "phase"})
        | {"kind": edit.kind.value, "subject": edit.subject, "may_be_absorbed": may}
        for edit, may in zip(edits, absorbed, strict=True)
    ]
    return lines_of([json.dumps(rows, indent=1)])
