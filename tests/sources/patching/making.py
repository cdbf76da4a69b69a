"""Edits made by hand for the tests."""

from __future__ import annotations

import difflib
import os
import subprocess
from pathlib import Path
from typing import Any

from rocwright.model.edits import Edit
from rocwright.sources.patching.history import ENVIRONMENT


class Git:
    """git in a tree of the tests' own, as a person runs it; no step ever saw the tree."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree

    def __call__(self, *words: str) -> str:
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        done = subprocess.run(
            ["git", "-C", str(self.tree), *words],
            env=env | ENVIRONMENT,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def log(self) -> list[tuple[str, str]]:
        """Commit ids and subjects, the oldest first."""
        rows = self("log", "--reverse", "--format=%H %s").splitlines()
        return [(row.partition(" ")[0], row.partition(" ")[2]) for row in rows]

    def uncommitted(self) -> list[str]:
        """Files that are changed but not committed, new ones that were not added left out."""
        return self("diff", "--name-only", "HEAD").splitlines()

    def commit_changes(self, message: str) -> None:
        """Commit what is changed in files that git knows."""
        self("commit", "--quiet", "--all", "--message", message)


def edit(file: str = "f", **fields: Any) -> Edit:
    """An edit as a recipe has it; `replace` stands for `with`, and underscores for hyphens."""
    data = {name.replace("_", "-"): value for name, value in fields.items()}
    for name, written in (("replace", "with"), ("versions", "for")):
        if name in data:
            data[written] = data.pop(name)
    return Edit.model_validate({"file": file, "why": "upstream #1"} | data)


def diff_of(files: dict[str, tuple[str | None, str | None]], **fields: Any) -> Edit:
    """The edit that turns each file's text into the other; None stands for no file."""
    return edit("", diff="patches/x.patch", patch=patch_text(files), **fields)


def patch_text(files: dict[str, tuple[str | None, str | None]]) -> str:
    """A unified diff as `git diff` writes it."""
    text = "From somebody\n\nWhat it is about.\n---\n"
    for name, (before, after) in files.items():
        lines = difflib.unified_diff(
            (before or "").splitlines(keepends=True),
            (after or "").splitlines(keepends=True),
            f"a/{name}" if before is not None else "/dev/null",
            f"b/{name}" if after is not None else "/dev/null",
        )
        text += "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
        )
    return text
