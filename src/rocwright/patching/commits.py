"""The ids that git gives to a tree and to commits of it, computed without a repository.

Author, date and message are fixed, so an id depends on content alone and is the same on every machine.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from rocwright.plan.environment import EPOCH

AUTHOR = "rocwright"
EMAIL = "rocwright@localhost"

UPSTREAM = "upstream"
EDITS = "edits"
PREPARED = "prepared"
PREPARED_EDITS = "edits of the prepared tree"
"""The messages of the commits that a build keeps, in their order."""


def commit_id(tree: str, parent: str, message: str) -> str:
    """The id of a commit of a tree on top of `parent` ("" for the first)."""
    who = f"{AUTHOR} <{EMAIL}> {EPOCH} +0000"
    lines = [f"tree {tree}", *([f"parent {parent}"] if parent else []), f"author {who}", f"committer {who}"]
    return _hash("commit", "\n".join([*lines, "", message, ""]).encode()).hexdigest()


def tree_id(folder: Path) -> str:
    """The id of a folder as git would keep it: files with their x bit, links, no empty folders."""
    found = _tree(os.fsencode(folder))
    return (found or _hash("tree", b"")).hexdigest()


def _tree(folder: bytes) -> hashlib._Hash | None:
    rows: list[tuple[bytes, bytes]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                inner = None if entry.name == b".git" else _tree(entry.path)
                if inner is not None:
                    # git sorts a folder as if its name ended with a slash
                    rows.append((entry.name + b"/", b"40000 %s\0%s" % (entry.name, inner.digest())))
            elif entry.name != b".git":
                rows.append((entry.name, _row(entry)))
    return _hash("tree", b"".join(row for _, row in sorted(rows))) if rows else None


def _row(entry: os.DirEntry[bytes]) -> bytes:
    if entry.is_symlink():
        return b"120000 %s\0%s" % (entry.name, _hash("blob", os.readlink(entry.path)).digest())  # noqa: PTH115
    mode = b"100755" if entry.stat().st_mode & stat.S_IXUSR else b"100644"
    return b"%s %s\0%s" % (
        mode,
        entry.name,
        _hash("blob", Path(os.fsdecode(entry.path)).read_bytes()).digest(),
    )


def _hash(kind: str, data: bytes) -> hashlib._Hash:
    # git's own choice; nothing here is safe because of it
    return hashlib.sha1(f"{kind} {len(data)}\0".encode() + data, usedforsecurity=False)
