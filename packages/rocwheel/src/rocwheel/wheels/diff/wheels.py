"""Two wheels compared, from the name down to the kernel."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from rocbase.files.atomic import sha256_bytes, sha256_file
from rocwheel.wheels.archive import opened
from rocwheel.wheels.devicecode.fatbin import may_hold_code
from rocwheel.wheels.devicecode.kpack import is_archive
from rocwheel.wheels.diff import code, kpacked, libraries
from rocwheel.wheels.diff.model import FileDifference, ValueChange, WheelDifference, changes
from rocwheel.wheels.elf import MAGIC
from rocwheel.wheels.metadata import DIST_INFO, RECORD, SIGNATURES, Headers, parse_name
from rocwheel.wheels.write import WheelFile

HEAD = 64
_HEADERS = ("METADATA", "WHEEL")
_ELSEWHERE = {f"*{DIST_INFO}/{name}" for name in (RECORD, *SIGNATURES, *_HEADERS)}
"""Files whose bytes are not compared: what they say is, or follows from the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    file: WheelFile
    sha256: str
    head: bytes


def diff(before: Path, after: Path) -> WheelDifference:
    """What differs between two wheels, unpacked wheels, or single files.

    Folders that are named after the version are compared whatever the version. RECORD follows from the files
    and is not compared. Raises InputError for what cannot be read, CheckError where it is damaged.
    """
    if before.is_file() and after.is_file() and sha256_file(before) == sha256_file(after):
        return WheelDifference(same_bytes=True, metadata=_names(before, after))
    with opened(before) as one, opened(after) as two:
        was, now = _seen(one), _seen(two)
        only_was = {path: seen for path, seen in was.items() if path not in now}
        only_now = {path: seen for path, seen in now.items() if path not in was}
        moved = tuple(_moved(only_was, only_now))
        gone = {change.before for change in moved} | {change.after for change in moved}
        files = tuple(
            found
            for path in sorted((was.keys() | now.keys()) - gone)
            if path not in _ELSEWHERE and (found := _compare(path, was, now))
        )
        metadata = (*_names(before, after), *_metadata(was, now))
        result = WheelDifference(same_bytes=False, metadata=metadata, moved=moved, files=files)
        return replace(result, written=tuple(_written(one, two))) if result.same else result


def _seen(files: Iterable[WheelFile]) -> dict[str, _Seen]:
    """Each file with its hash; *.dist-info and *.data without name and version."""
    found = {}
    for file in files:
        digest = hashlib.sha256()
        head = b""
        for piece in file.pieces():
            digest.update(piece)
            if len(head) < HEAD:
                head = (head + piece)[:HEAD]
        found[versionless(file.path)] = _Seen(file=file, sha256=digest.hexdigest(), head=head)
    return found


def versionless(path: str) -> str:
    """A file's path in a wheel as a difference names it: *.dist-info and *.data without name and version."""
    top, slash, rest = path.partition("/")
    for suffix in (DIST_INFO, ".data"):
        if slash and top.endswith(suffix):
            return f"*{suffix}/{rest}"
    return path


def _moved(before: Mapping[str, _Seen], after: Mapping[str, _Seen]) -> Iterator[ValueChange]:
    """Files that lie elsewhere with the same content, where that is no matter of chance."""
    there: dict[str, list[str]] = {}
    for path, seen in after.items():
        there.setdefault(seen.sha256, []).append(path)
    for path, seen in sorted(before.items()):
        if seen.file.size and there.get(seen.sha256):
            yield ValueChange(what="moved", before=path, after=there[seen.sha256].pop(0))


def _compare(path: str, was: Mapping[str, _Seen], now: Mapping[str, _Seen]) -> FileDifference | None:
    before, after = was.get(path), now.get(path)
    changed = [] if before is None or after is None else list(changes(_mode(before), _mode(after)))
    if before and after and before.sha256 == after.sha256 and not changed:
        return None
    found = FileDifference(
        path=path,
        before=before.file.size if before else None,
        after=after.file.size if after else None,
        changes=tuple(changed),
    )
    if before and after and before.sha256 == after.sha256:
        return found
    kinds = {_kind(seen.head) for seen in (before, after) if seen}
    if kinds == {""}:
        return found
    with ExitStack() as stack:
        one, two = (stack.enter_context(_on_disk(seen)) for seen in (before, after))
        ours, theirs = (
            kpacked.with_archives(path, file, _archives(tree, stack))
            for file, tree in ((one, was), (two, now))
        )
        found = replace(found, changes=(*found.changes, *kpacked.moves(ours, theirs)))
        if not kpacked.is_away(ours) and not kpacked.is_away(theirs):
            found = replace(found, code=code.compare_code(ours, theirs))
        return _with_library(found, one, two) if kinds == {"elf"} and one and two else found


def _archives(tree: Mapping[str, _Seen], stack: ExitStack) -> kpacked.Archives:
    """The kpack archives of a tree by their paths, each put on disk where it is asked for."""
    return {
        path: lambda seen=seen: stack.enter_context(_on_disk(seen))  # type: ignore[misc]
        for path, seen in tree.items()
        if is_archive(seen.head)
    }


def _with_library(found: FileDifference, before: Path, after: Path) -> FileDifference:
    """The difference of two files, with what differs in them as libraries."""
    one, two = (libraries.read_library(path, found.path) for path in (before, after))
    found = replace(
        found,
        changes=(*found.changes, *changes(one.words, two.words)),
        sections=changes(one.sections, two.sections),
        names=libraries.compare_names(one, two),
    )
    if found.changes or found.sections:
        return found
    return replace(
        found, changes=(ValueChange(what="headers, or bytes in no section", before="", after="other"),)
    )


def _kind(head: bytes) -> str:
    if head.startswith(MAGIC):
        return "elf"
    return "bundle" if may_hold_code(head) else ""


def _mode(seen: _Seen) -> dict[str, str]:
    return {"may be run": "yes" if seen.file.mode & 0o111 else "no"}


@contextmanager
def _on_disk(seen: _Seen | None) -> Iterator[Path | None]:
    """The file where it can be read at any place; None where it is not there, or holds nothing to see."""
    if seen is None or not _kind(seen.head):
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / PurePosixPath(seen.file.path).name
        with path.open("wb") as file:
            for piece in seen.file.pieces():
                file.write(piece)
        yield path


def _names(before: Path, after: Path) -> tuple[ValueChange, ...]:
    """What the file names of two wheels differ in."""
    if not before.name.endswith(".whl") or not after.name.endswith(".whl"):
        return ()
    one, two = parse_name(before.name), parse_name(after.name)
    parts = ("name", "version", "build", "python", "abi", "platform")
    return changes(
        {f"file name: {part}": getattr(one, part) for part in parts},
        {f"file name: {part}": getattr(two, part) for part in parts},
    )


def _metadata(before: Mapping[str, _Seen], after: Mapping[str, _Seen]) -> Iterator[ValueChange]:
    """What METADATA and WHEEL differ in, by header."""
    for name in _HEADERS:
        yield from changes(_headers(before, name), _headers(after, name))


def _headers(seen: Mapping[str, _Seen], name: str) -> dict[str, str]:
    found_in = seen.get(f"*{DIST_INFO}/{name}")
    headers = Headers(found_in.file.read() if found_in else b"")
    found = {f"{name}: {header}": "\n".join(headers.all(header)) for header in headers.names()}
    if headers.text:
        found[f"{name}: text"] = f"{len(headers.text):,} bytes, {sha256_bytes(headers.text)[:12]}"
    return found


def _written(before: Sequence[WheelFile], after: Sequence[WheelFile]) -> Iterator[str]:
    one, two = ({versionless(file.path): file.mode for file in files} for files in (before, after))
    if list(one) != list(two):
        yield "the order of the files"
    if one != two:
        yield "the modes of the files"
    yield "times, compression, or fields of the zip"
