"""A repository of one commit and its trees, laid into a tree whose build asks git of what it is."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping
from hashlib import sha1
from pathlib import Path
from zlib import adler32

from rocbase.errors import FetchError
from rocbase.processes import run as process

# Where it lies until a command of the build moves it to `.git`: git on this machine takes it for a folder.
FOLDER = ".git-repository"

# Objects without end are cut off: PyTorch's trees take 1 MiB.
_BATCH = """
ulimit -f 131072
cd "$1"
git rev-list --objects --filter=blob:none --no-object-names FETCH_HEAD > .git/listed
git rev-parse --quiet --verify FETCH_HEAD:.gitmodules >> .git/listed || :
git cat-file --batch < .git/listed > .git/batch
"""

# The largest block that zlib stores as it is, in bytes.
_STORED = 65535


def lay_repository(tree: Path, commit: str, environment: Mapping[str, str]) -> None:
    """Lay the commit that was fetched into the checkout `tree`, its trees and `.gitmodules` into FOLDER.

    The bytes are the same on every machine: objects are stored uncompressed. Raises FetchError where they
    cannot be read, or are more than any real commit has.
    """
    ended = process.run(("sh", "-eu", "-c", _BATCH, "sh", str(tree)), env=environment, timeout=600)
    if not ended.ok:
        raise FetchError(
            f"the trees of the commit {commit[:12]} cannot be read",
            cause=(ended.stderr.strip().splitlines() or ["they take more than 64 MiB"])[-1],
            next_step="leave `repository` out of the recipe's source, or name another source",
        )
    folder = tree / FOLDER
    try:
        folder.mkdir()
    except FileExistsError as error:
        raise FetchError(
            f"the commit {commit[:12]} has something of the name {FOLDER}",
            cause="a repository of the commit is laid there for its build",
            next_step="leave `repository` out of the recipe's source, or name another source",
        ) from error
    (folder / "refs").mkdir()
    (folder / "HEAD").write_text(f"{commit}\n")
    (folder / "shallow").write_text(f"{commit}\n")
    (folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    for content in _objects((tree / ".git/batch").read_bytes()):
        name = sha1(content, usedforsecurity=False).hexdigest()
        target = folder / "objects" / name[:2] / name[2:]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(_uncompressed(content))


def _objects(batch: bytes) -> Iterator[bytes]:
    """Each object that `git cat-file --batch` prints, as it is hashed: kind, size and content."""
    stream = io.BytesIO(batch)
    while row := stream.readline():
        _, kind, size = row.split()
        yield kind + b" " + size + b"\0" + stream.read(int(size))
        stream.read(1)


def _uncompressed(content: bytes) -> bytes:
    """A zlib stream of stored blocks (RFC 1950 and 1951): no library packs them otherwise."""
    blocks = [content[start : start + _STORED] for start in range(0, len(content), _STORED)]
    packed = b"".join(
        struct.pack("<BHH", number == len(blocks), len(block), len(block) ^ 0xFFFF) + block
        for number, block in enumerate(blocks, 1)
    )
    return b"\x78\x01" + packed + struct.pack(">I", adler32(content))
