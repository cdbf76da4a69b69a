"""The ids that git gives to a tree and to commits of it, computed without a repository.

Author, date and message are fixed, so an id depends on content alone and is the same on every machine.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from rocwright.model.step_environment import EPOCH

AUTHOR = "rocwright"
EMAIL = "rocwright@localhost"

UPSTREAM = "upstream"
EDITS = "edits"
PREPARED = "prepared"
# The messages of the commits that a build keeps, in their order.
PREPARED_EDITS = "edits of the prepared tree"

# Takes an object, by its kind and content; gives its id.
Put = Callable[[str, bytes], bytes]

# Is told each file of a tree: its path below the folder, mode and id.
OnFile = Callable[[bytes, int, bytes], object]


def object_id(kind: str, data: bytes) -> bytes:
    """The id of an object."""
    # sha1 is git's own choice; nothing here is safe because of it
    return hashlib.sha1(f"{kind} {len(data)}\0".encode() + data, usedforsecurity=False).digest()


def commit_text(tree: str, parent: str, message: str) -> bytes:
    """A commit of a tree on top of `parent` ("" for the first), as git keeps it."""
    identity = f"{AUTHOR} <{EMAIL}> {EPOCH} +0000"
    lines = [
        f"tree {tree}",
        *([f"parent {parent}"] if parent else []),
        f"author {identity}",
        f"committer {identity}",
    ]
    return "\n".join([*lines, "", message, ""]).encode()


def commit_id(tree: str, parent: str, message: str) -> str:
    """The id of a commit of a tree on top of `parent` ("" for the first)."""
    return object_id("commit", commit_text(tree, parent, message)).hex()


def tree_id(folder: Path, put: Put = object_id, on_file: OnFile = lambda *_: None) -> str:
    """The id of a folder as git would keep it: files with their x bit, links, no empty folders, no .git.

    Each object goes through `put`, each file is told to `on_file`, the files of a folder in any order.
    """
    top = os.fsencode(folder)

    def tree(folder: bytes) -> bytes | None:
        rows: list[tuple[bytes, bytes]] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name == b".git":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    inner = tree(entry.path)
                    if inner is not None:
                        # git sorts a folder as if its name ended with a slash
                        rows.append((entry.name + b"/", b"40000 %s\0%s" % (entry.name, inner)))
                    continue
                mode, data = _content(entry)
                blob = put("blob", data)
                on_file(entry.path[len(top) + 1 :], mode, blob)
                rows.append((entry.name, b"%o %s\0%s" % (mode, entry.name, blob)))
        return put("tree", b"".join(row for _, row in sorted(rows))) if rows else None

    return (tree(top) or put("tree", b"")).hex()


def _content(entry: os.DirEntry[bytes]) -> tuple[int, bytes]:
    if entry.is_symlink():
        return 0o120000, os.readlink(entry.path)  # noqa: PTH115 - bytes
    mode = 0o100755 if entry.stat().st_mode & stat.S_IXUSR else 0o100644
    return mode, Path(os.fsdecode(entry.path)).read_bytes()
