"""A git repository written without git: what the build did to a source, as commits.

No program of the host runs on a tree, and nothing in a tree says how it is read.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

from rocwright.sources.patching.commits import commit_text, object_id, tree_id

# The last commit that the build made, or that was saved: what is on top of it is the user's.
BASE = "refs/rocwright/base"

MAIN = "refs/heads/main"

CONFIG = """[core]
	repositoryformatversion = 0
	bare = false
	fileMode = true
	symlinks = true
	autocrlf = false
	logAllRefUpdates = true
[gc]
	auto = 0
"""

# Stands over a tree's own .gitattributes: bytes are kept as they are.
ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding -export-subst\n"


class Repository:
    """The repository in `folder`, an empty one that no sandbox has seen.

    Nothing is synced to the disk: it can be made again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.head = ""
        self.files: dict[bytes, tuple[int, bytes]] = {}
        """The files of the last commit: path -> mode and id."""
        for name in ("objects/info", "objects/pack", "refs/heads", "refs/rocwright", "info"):
            (folder / name).mkdir(parents=True)
        (folder / "HEAD").write_text(f"ref: {MAIN}\n")
        (folder / "config").write_text(CONFIG)
        (folder / "info" / "attributes").write_text(ATTRIBUTES)

    def commit(self, tree: Path, message: str) -> str:
        """Commit all that is in the folder `tree`, which has files, folders and links only; gives the id."""
        files: dict[bytes, tuple[int, bytes]] = {}

        def note(path: bytes, mode: int, digest: bytes) -> None:
            files[path] = (mode, digest)

        root = tree_id(tree, self._put, note)
        self.head, self.files = self._put("commit", commit_text(root, self.head, message)).hex(), files
        return self.head

    def finish(self) -> None:
        """Name the last commit as the user's first parent, and as what lies in the work tree."""
        for name in (MAIN, BASE):
            (self.folder / name).write_text(f"{self.head}\n")
        rows = ((path, mode, digest) for path, (mode, digest) in sorted(self.files.items()))
        (self.folder / "index").write_bytes(index(rows, len(self.files)))

    def _put(self, kind: str, data: bytes) -> bytes:
        digest = object_id(kind, data)
        name = digest.hex()
        path = self.folder / "objects" / name[:2] / name[2:]
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(zlib.compress(f"{kind} {len(data)}\0".encode() + data, 1))
        return digest


def index(rows: Iterable[tuple[bytes, int, bytes]], count: int) -> bytes:
    """The index of files by path, mode and id, in the order of their paths (gitformat-index, version 2).

    Nothing is said of a file's times and size, so git looks at each anew.
    """
    parts = [struct.pack(">4sII", b"DIRC", 2, count)]
    for path, mode, digest in rows:
        fixed = struct.pack(">10I20sH", *(0,) * 6, mode, 0, 0, 0, digest, min(len(path), 0xFFF))
        # ended by one to eight zeros, so that the next begins at a multiple of eight
        parts.append((fixed + path).ljust((len(fixed) + len(path) + 8) // 8 * 8, b"\0"))
    content = b"".join(parts)
    return content + hashlib.sha1(content, usedforsecurity=False).digest()
