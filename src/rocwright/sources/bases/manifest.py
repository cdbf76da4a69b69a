"""What an unpacked root file system looked like when it was whole: a line of numbers for each name in it.

It tells in a fraction of a second, without reading a file, whether anything was changed since. The archive in
the store is what a root is compared with byte by byte, where the numbers leave it open.
"""

from __future__ import annotations

import os
import stat
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rocbase.files.atomic import sha256_bytes, write_atomic

_HEAD = b"rocwright-root-manifest-1"
_WIDTH = 7
_MASK = 2**64 - 1


class ManifestRow(NamedTuple):
    """A name below a root: what stays the same where a root is moved or copied, and what does not.

    `size` is in bytes, 0 of a folder; `mtime` and `ctime` in nanoseconds; `target` that of a link.
    """

    name: str
    target: str
    mode: int
    uid: int
    gid: int
    size: int
    mtime: int
    inode: int
    ctime: int

    @property
    def lasting(self) -> tuple[object, ...]:
        """All but the inode and the time of its last change."""
        return self[:-2]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Names with link targets, and the numbers of each, in the order of a walk."""

    names: bytes
    numbers: bytes

    def rows(self) -> Iterator[ManifestRow]:
        """What it says, row by row."""
        words = os.fsdecode(self.names).split("\0")
        numbers = array("Q", self.numbers)
        for index in range(len(words) // 2):
            yield ManifestRow(
                words[2 * index], words[2 * index + 1], *numbers[index * _WIDTH : (index + 1) * _WIDTH]
            )

    def write(self, path: Path) -> None:
        """Keep it, with its own sha256."""
        body = len(self.names).to_bytes(8, "big") + self.names + self.numbers
        write_atomic(path, _HEAD + b" " + sha256_bytes(body).encode() + b"\n" + body)


def read_manifest(path: Path) -> Manifest | None:
    """The manifest that is kept in a file; None where there is none, or it is not as it was written."""
    try:
        head, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if head != _HEAD + b" " + sha256_bytes(body).encode():
        return None
    length = int.from_bytes(body[:8], "big")
    return Manifest(names=body[8 : 8 + length], numbers=body[8 + length :])


def look(root: Path) -> Manifest:
    """What a root looks like now. Raises OSError where it cannot be walked."""
    names: list[str] = []
    numbers: list[int] = []
    _note(names, numbers, ".", "", os.lstat(root))
    waiting = [("", str(root))]
    while waiting:
        prefix, folder = waiting.pop()
        with os.scandir(folder) as entries:
            ordered = sorted(entries, key=_name)
        for entry in ordered:
            status, name = entry.stat(follow_symlinks=False), prefix + entry.name
            if stat.S_ISDIR(status.st_mode):
                waiting.append((f"{name}/", entry.path))
            # this loop is most of what a check takes: no call in it that could be left out
            link = os.readlink(entry.path) if stat.S_ISLNK(status.st_mode) else ""  # noqa: PTH115
            names += (name, link)
            numbers += (
                status.st_mode,
                status.st_uid,
                status.st_gid,
                0 if stat.S_ISDIR(status.st_mode) else status.st_size,
                status.st_mtime_ns,
                status.st_ino,
                status.st_ctime_ns,
            )
    return Manifest(names=os.fsencode("\0".join(names)), numbers=_packed(numbers))


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


def _note(names: list[str], numbers: list[int], name: str, link: str, status: os.stat_result) -> None:
    names += (name, link)
    numbers += (
        *(status.st_mode, status.st_uid, status.st_gid, 0),
        *(status.st_mtime_ns, status.st_ino, status.st_ctime_ns),
    )


def _packed(numbers: list[int]) -> bytes:
    try:
        return array("Q", numbers).tobytes()
    except OverflowError:
        # a time before 1970
        return array("Q", [number & _MASK for number in numbers]).tobytes()


def first_difference(previous: Manifest, current: Manifest) -> str:
    """The first name of which more than inode and ctime differ; "" where there is none."""
    remaining = {row.name: row for row in previous.rows()}
    for row in current.rows():
        old = remaining.pop(row.name, None)
        if old is None or old.lasting != row.lasting:
            return row.name
    return next(iter(remaining), "")
