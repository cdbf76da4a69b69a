"""The one writer of wheels: the same files and the same time give the same bytes, whole or not at all.

Source: the binary distribution format, https://packaging.python.org/specifications/binary-distribution-format/
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rocbase.errors import InputError
from rocbase.files.atomic import atomic_file
from rocbase.files.bounds import check_text
from rocwheel.wheels.hashing import Sha256
from rocwheel.wheels.metadata import RECORD, SIGNATURES, RecordRow, dist_info_folder, record_bytes
from rocwheel.wheels.zipping import CHUNK, EARLIEST, Digest, Packed, Stream, ZipWriter, check_compressor

LONGEST_PATH = 4096
"""In characters; Linux takes as many bytes."""

_EPOCH = "SOURCE_DATE_EPOCH"
_HOSTILE = re.compile(r"[\x00-\x1f\x7f\\]|^/|^[A-Za-z]:|(^|/)\.{0,2}(/|$)")


class RandomAccess(Protocol):
    """Bytes with random access."""

    @property
    def size(self) -> int: ...

    def read_at(self, offset: int, count: int, /) -> bytes:
        """Exactly `count` bytes; raises CheckError where there are fewer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFile:
    """A file of a wheel: where it is, seen from the wheel, its mode, and what it holds.

    `mode`'s bits that say who may run it decide between 0755 and 0644; nothing else of it is kept.
    """

    path: str
    content: bytes | Path | RandomAccess | Stream
    mode: int = 0o644

    @property
    def size(self) -> int:
        """In bytes."""
        match self.content:
            case bytes():
                return len(self.content)
            case Path():
                return self.content.stat().st_size
            case _:
                return self.content.size

    def pieces(self) -> Iterator[bytes]:
        """What it holds, a part at a time."""
        match self.content:
            case bytes():
                yield self.content
            case Path():
                with self.content.open("rb") as file:
                    while piece := file.read(CHUNK):
                        yield piece
            case Stream():
                yield from self.content.unpacked()
            case _:
                size = self.content.size
                for offset in range(0, size, CHUNK):
                    yield self.content.read_at(offset, min(CHUNK, size - offset))

    def read(self, limit: int = 0) -> bytes:
        """Return a text of the wheel. Raises CheckError if it is larger than `check_text` allows."""
        check_text(self.path, self.size, limit)
        return b"".join(self.pieces())

    def row(self) -> RecordRow:
        """What RECORD says of it."""
        digest = Sha256()
        for piece in self.pieces():
            digest.update(piece)
        return RecordRow(path=self.path, sha256=digest.hexdigest(), size=self.size)


def write_wheel(
    out: Path,
    files: Iterable[WheelFile],
    *,
    epoch: int,
    copy: bool = False,
    approve: Callable[[Sequence[RecordRow]], None] | None = None,
) -> None:
    """Write a wheel of `files` to `out`, whole or not at all.

    Sorted by path, `*.dist-info` behind the rest, RECORD made anew and last; all members deflated by one
    compressor (see zipping) and with the time `epoch`, in seconds since 1970. With `copy`, members that are
    deflated already are taken as they are: quicker, and the bytes depend on who deflated them. `approve` gets
    the new RECORD and may raise; nothing is written then.
    Needs little memory, whatever the files' sizes. Raises InputError for names that no wheel may have and
    for a signed wheel, CheckError where a content is not what it says it is.
    """
    ordered = in_order(files)
    record = f"{dist_info_folder(file.path for file in ordered)}/{RECORD}"
    rows = []
    if not copy:
        check_compressor()
    with atomic_file(out) as target:
        writer = ZipWriter(target, epoch)
        for file in ordered:
            if file.path != record:
                digest = _put(writer, file, copy=copy)
                rows.append(RecordRow(path=file.path, sha256=digest.sha256, size=digest.size))
        if approve:
            approve(rows)
        text = record_bytes([*rows, RecordRow(path=record)])
        writer.add(record, 0o644, len(text), [text])
        writer.finish()


def in_order(files: Iterable[WheelFile]) -> list[WheelFile]:
    """The files as a wheel holds them. Raises InputError for names that no wheel may have, and links."""
    members = list(files)
    check_paths(file.path for file in members)
    folder = dist_info_folder(file.path for file in members)
    for name in SIGNATURES:
        if any(file.path == f"{folder}/{name}" for file in members):
            raise InputError(
                f"the wheel is signed ({name}), and rewriting it would make the signature invalid",
                cause="the signature covers the RECORD that it has now",
                next_step=f"remove {folder}/{name} from the wheel first, and sign the result again",
            )
    return sorted(members, key=lambda file: order_in(folder, file.path))


def order_in(folder: str, path: str) -> tuple[bool, bool, bytes]:
    """What files of a wheel are sorted by; `folder` is its *.dist-info."""
    return path.startswith(f"{folder}/"), path == f"{folder}/{RECORD}", path.encode()


def check_paths(paths: Iterable[str]) -> None:
    """Raise InputError for paths that leave the folder they are unpacked in, or stand in each other's way."""
    last = ""
    # With the slash below every other character, what lies in a folder comes right behind a file of its name.
    for path in sorted(paths, key=lambda path: path.replace("/", "\0")):
        check_path(path)
        if path == last:
            raise _hostile(path, "is in it twice")
        if path.startswith(f"{last}/"):
            raise _hostile(last, "is both a file and a folder")
        last = path


def check_path(path: str) -> None:
    """Raise InputError for a path that leaves the folder it is unpacked in."""
    if _HOSTILE.search(path) or not path.isprintable() or len(path) > LONGEST_PATH:
        raise _hostile(path, "is not a valid path inside a wheel")


def epoch_from_environment() -> int:
    """SOURCE_DATE_EPOCH, else 1980-01-01, the first time that a zip can hold. Raises InputError."""
    text = os.environ.get(_EPOCH, "")
    if not re.fullmatch(r"\s*-?\d{0,18}\s*", text):
        raise InputError(
            f"{_EPOCH} is {text!r}, which is not a whole number of seconds",
            cause="it was set by hand, or by a script that failed",
            next_step=f"export {_EPOCH}=$(git log -1 --format=%ct), or unset it",
        )
    return int(text) if text.strip() else EARLIEST


def _put(writer: ZipWriter, file: WheelFile, *, copy: bool) -> Digest:
    mode = 0o755 if file.mode & 0o111 else 0o644
    if copy and isinstance(file.content, Packed):
        return writer.copy(file.path, mode, file.content)
    return writer.add(file.path, mode, file.size, file.pieces())


def _hostile(path: str, problem: str) -> InputError:
    return InputError(
        f"{path[:200]!r} {problem}",
        cause="the wheel is damaged, or tries to write outside its own folder",
        next_step="download it again, or rebuild it",
    )
