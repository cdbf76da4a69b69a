"""A wheel with only the GPU code that is needed, in a version that says so."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from rocbase.errors import CheckError, InputError
from rocwheel.wheels.archive import open_wheel
from rocwheel.wheels.canonicalize import agreeing_with
from rocwheel.wheels.choose import ProcessorCode, Target, needed
from rocwheel.wheels.devicecode.bundle import ALIGNMENT, LONGEST_ID, MAGIC, MOST_ENTRIES, parse_entry_id
from rocwheel.wheels.devicecode.gpu import HEADER_SIZE
from rocwheel.wheels.hashing import Sha256
from rocwheel.wheels.metadata import RECORD, RecordRow, dist_info_folder, moved, parse_name, with_local
from rocwheel.wheels.parts import BytePart, Joined, pieces
from rocwheel.wheels.retitle import named, retitled
from rocwheel.wheels.scratch import MIB, Scratch, scratch
from rocwheel.wheels.slim.cut import Span
from rocwheel.wheels.slim.report import SlimReport
from rocwheel.wheels.slim.wish import Wish
from rocwheel.wheels.slim.work import HEAD, SlimFile, Work, work_through
from rocwheel.wheels.source import ByteSource
from rocwheel.wheels.write import WheelFile, write_wheel

SUFFIX = ".whl"

ONE_LIBRARY, RESULTS = 128 * MIB, 64 * MIB
"""What is held in memory of the library in work, and of all new contents; more of it is put on disk."""


def slim_wheel(
    path: Path,
    out: Path,
    wish: Wish,
    *,
    names: Collection[str],
    epoch: int,
    tell: Callable[[str], None] = lambda text: None,
) -> SlimReport:
    """Write the slimmed wheel `path` into the folder `out`, or to `out` where that ends as its new name does.

    `names` are the names of all targets, `epoch` the time of the files within, in seconds since 1970. Raises
    InputError for what is no wheel and for a false name in `out`; CheckError as work_through does, and where
    RECORD contradicts the files.
    """
    name = parse_name(path.name)
    version = slim_version(name.version, wish.targets, names)
    new_name = named(name, version)
    target = out if out.suffix == SUFFIX else out / new_name
    if target.name != new_name:
        raise InputError(
            f"the slimmed wheel is called {new_name}",
            cause=f"{target.name} would contradict its own metadata, and pip would refuse to install it",
            next_step=f"give the folder: -o {target.parent}",
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        open_wheel(path) as files,
        scratch(target.parent, ONE_LIBRARY) as aside,
        scratch(target.parent, RESULTS) as results,
    ):
        rows: dict[str, RecordRow] = {}
        candidates = [
            SlimFile(
                path=file.path,
                size=file.size,
                head=_head(file),
                open=partial(_unpack, file, wish, aside, rows),
            )
            for file in files
        ]
        work = work_through(candidates, wish, results, settle=partial(_keep, results), tell=tell)
        slimmed = [
            replace(file, content=work.rewritten[file.path]) if file.path in work.rewritten else file
            for file in files
            if file.path not in work.removed
        ]
        tell(target.name)
        approve = _as_recorded(path, files, work, version, rows)
        write_wheel(target, retitled(slimmed, version), epoch=epoch, copy=True, approve=approve)
    return SlimReport(
        out=target,
        version=version,
        before=path.stat().st_size,
        after=target.stat().st_size,
        changed=tuple(work.changed),
        left=work.left,
        missing=work.missing,
    )


def _as_recorded(
    path: Path, files: Sequence[WheelFile], work: Work, version: str, rows: Mapping[str, RecordRow]
) -> Callable[[Sequence[RecordRow]], None]:
    """What raises CheckError where the RECORD of the wheel `path` is not that of what it held.

    `rows` are of the files that were unpacked. A new RECORD for files that were changed on their way would
    hide that they were.
    """
    folder = dist_info_folder(file.path for file in files)
    changed = {*work.rewritten, *work.removed, f"{folder}/METADATA"}
    remedy = "`rocwheel canonicalize --fix-record` it first"
    agree = agreeing_with(files, path, remedy=remedy)

    def approve(new: Sequence[RecordRow]) -> None:
        written = {row.path: row for row in new}
        agree(
            [
                (rows.get(file.path) or file.row())
                if file.path in changed
                else replace(written[moved(file.path, folder, version)], path=file.path)
                for file in files
                if file.path != f"{folder}/{RECORD}"
            ]
        )

    return approve


def slim_version(version: str, targets: Sequence[Target], names: Collection[str]) -> str:
    """The version with a local part that names the targets, in the place of those of an earlier slimming.

    1.22.2 gives 1.22.2+gfx1151, 2.8.0+rocm6.4 gives 2.8.0+rocm6.4.gfx1151.
    """
    public, _, local = version.partition("+")
    parts = [part for part in local.replace("_", ".").replace("-", ".").split(".") if part not in names]
    label = ".".join([*filter(None, parts), *(target.in_version for target in targets)])
    return with_local(public, label)


def _head(file: WheelFile) -> bytes:
    return next(iter(file.pieces()), b"")[:HEAD]


def _unpack(file: WheelFile, wish: Wish, aside: Scratch, rows: dict[str, RecordRow]) -> ByteSource:
    """A member in the place of the one before it; its row of RECORD is put into `rows`."""
    aside.forget()
    return skimmed(partial(_noted, file, rows), file.size, wish, aside, file.path)


def _noted(file: WheelFile, rows: dict[str, RecordRow]) -> Iterator[bytes]:
    """A file's pieces; with the last of them, its row is known."""
    digest = Sha256()
    for piece in file.pieces():
        digest.update(piece)
        yield piece
    rows[file.path] = RecordRow(path=file.path, sha256=digest.hexdigest(), size=digest.size)


def _keep(results: Scratch, content: ByteSource) -> ByteSource:
    part = results.put(pieces(content))
    return results.window(part.offset, part.size)


_ROW = struct.Struct("<QQQ")


def skimmed(
    unpack: Callable[[], Iterable[bytes]], size: int, wish: Wish, aside: Scratch, subject: str
) -> Joined:
    """The `size` bytes that `unpack` gives, as often as it is called; what is kept of them is in `aside`."""
    again = _Again(unpack, size, aside, subject)
    parts: list[BytePart] = []
    position = 0
    unneeded: list[Span] = []
    for piece in unpack():
        unneeded += _unneeded(piece, position, wish)
        offset = 0
        while offset < len(piece):
            while unneeded and unneeded[0][1] <= position + offset:
                del unneeded[0]
            begin, end = (bound - position for bound in unneeded[0]) if unneeded else (len(piece), 0)
            if begin <= offset:
                count = min(end, len(piece)) - offset
                parts.append(BytePart(again, position + offset, count))
            else:
                count = min(begin, len(piece)) - offset
                parts.append(aside.put([piece[offset : offset + count]]))
            offset += count
        position += len(piece)
    return Joined(parts, subject)


class _Again(ByteSource):
    """All of it, unpacked when it is asked for."""

    def __init__(
        self, unpack: Callable[[], Iterable[bytes]], size: int, aside: Scratch, subject: str
    ) -> None:
        super().__init__(size, aside.budget, subject)
        self._unpack = unpack
        self._aside = aside
        self._whole: BytePart | None = None

    def _get(self, offset: int, count: int) -> bytes:
        if self._whole is None:
            self._whole = self._aside.put(self._unpack())
        return self._whole.read(offset, count)


def _unneeded(piece: bytes, position: int, wish: Wish) -> Iterator[Span]:
    """Code objects of the bundles that begin in a piece, without their heads, that `wish` does not need."""
    first = -position % ALIGNMENT
    page = -1
    begins = piece[first::ALIGNMENT]  # of each page; to look through all of it takes as long as to inflate it
    while (page := begins.find(MAGIC[:1], page + 1)) >= 0:
        start = first + page * ALIGNMENT
        if not piece.startswith(MAGIC, start):
            continue
        rows = _rows(piece, start)
        retained, _ = needed([code for code, _, _ in rows], wish.targets, wish.covered)
        for number, (_, offset, size) in enumerate(rows):
            if number not in retained and size > HEADER_SIZE:
                yield position + start + offset + HEADER_SIZE, position + start + offset + size


def _rows(piece: bytes, start: int) -> list[tuple[ProcessorCode, int, int]]:
    """Code, offset and size of a bundle's entries; none where its head is not whole, or in disorder."""
    rows: list[tuple[ProcessorCode, int, int]] = []
    end = start + len(MAGIC) + 8
    (count,) = struct.unpack("<Q", piece[end - 8 : end].ljust(8, b"\0"))
    if count > MOST_ENTRIES:
        return []
    last = 0
    for _ in range(count):
        if end + _ROW.size > len(piece):
            return []
        offset, size, length = _ROW.unpack_from(piece, end)
        name = piece[end + _ROW.size : end + _ROW.size + length]
        if length > LONGEST_ID or len(name) < length or offset < last:
            return []
        try:
            parsed = parse_entry_id(name.decode("ascii", errors="replace"), "")
        except CheckError:
            return []
        if parsed:
            rows.append((ProcessorCode({parsed[0]}, parsed[1]), offset, size))
        last = offset + size
        end += _ROW.size + length
    return rows
