"""Two wheels compared, from the name down to the kernel."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from rocbase.files.atomic import sha256_bytes, sha256_file
from rocwheel.wheels.archive import opened
from rocwheel.wheels.devicecode.fatbin import fat_binary, may_hold_code
from rocwheel.wheels.devicecode.kpack import is_archive
from rocwheel.wheels.diff import code, libraries
from rocwheel.wheels.diff.code import FileCode
from rocwheel.wheels.diff.model import FileDifference, ValueChange, WheelDifference, changes
from rocwheel.wheels.elf import MAGIC
from rocwheel.wheels.metadata import DIST_INFO, RECORD, SIGNATURES, Headers, parse_name
from rocwheel.wheels.source import FileSource
from rocwheel.wheels.write import WheelFile

HEAD = 64
_HEADERS = ("METADATA", "WHEEL")
_ELSEWHERE = {f"*{DIST_INFO}/{name}" for name in (RECORD, *SIGNATURES, *_HEADERS)}
"""Files whose bytes are not compared: what they say is, or follows from the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TreeEntry:
    file: WheelFile
    sha256: str
    head: bytes


def diff(old: Path, new: Path) -> WheelDifference:
    """What differs between two wheels, unpacked wheels, or single files.

    Folders that are named after the version are compared whatever the version. RECORD follows from the files
    and is not compared. Raises InputError for what cannot be read, CheckError where it is damaged.
    """
    if old.is_file() and new.is_file() and sha256_file(old) == sha256_file(new):
        return WheelDifference(same_bytes=True, metadata=_names(old, new))
    with opened(old) as old_files, opened(new) as new_files:
        old_tree, new_tree = _read_tree(old_files), _read_tree(new_files)
        only_old = {path: entry for path, entry in old_tree.items() if path not in new_tree}
        only_new = {path: entry for path, entry in new_tree.items() if path not in old_tree}
        moved = tuple(_moved(only_old, only_new))
        relocated = {change.before for change in moved} | {change.after for change in moved}
        files = tuple(
            difference
            for path in sorted((old_tree.keys() | new_tree.keys()) - relocated)
            if path not in _ELSEWHERE and (difference := _compare(path, old_tree, new_tree))
        )
        metadata = (*_names(old, new), *_metadata(old_tree, new_tree))
        result = WheelDifference(same_bytes=False, metadata=metadata, moved=moved, files=files)
        return replace(result, written=tuple(_written(old_files, new_files))) if result.same else result


def _read_tree(files: Iterable[WheelFile]) -> dict[str, _TreeEntry]:
    """Each file with its hash; *.dist-info and *.data without name and version."""
    entries = {}
    for file in files:
        digest = hashlib.sha256()
        head = b""
        for piece in file.pieces():
            digest.update(piece)
            if len(head) < HEAD:
                head = (head + piece)[:HEAD]
        entries[versionless(file.path)] = _TreeEntry(file=file, sha256=digest.hexdigest(), head=head)
    return entries


def versionless(path: str) -> str:
    """A file's path in a wheel as a difference names it: *.dist-info and *.data without name and version."""
    top, slash, inner = path.partition("/")
    for suffix in (DIST_INFO, ".data"):
        if slash and top.endswith(suffix):
            return f"*{suffix}/{inner}"
    return path


def _moved(old: Mapping[str, _TreeEntry], new: Mapping[str, _TreeEntry]) -> Iterator[ValueChange]:
    """Files that lie elsewhere with the same content, where that is no matter of chance."""
    by_digest: dict[str, list[str]] = {}
    for path, entry in new.items():
        by_digest.setdefault(entry.sha256, []).append(path)
    for path, entry in sorted(old.items()):
        if entry.file.size and by_digest.get(entry.sha256):
            yield ValueChange(what="moved", before=path, after=by_digest[entry.sha256].pop(0))


def _compare(
    path: str, old_tree: Mapping[str, _TreeEntry], new_tree: Mapping[str, _TreeEntry]
) -> FileDifference | None:
    old, new = old_tree.get(path), new_tree.get(path)
    changed = [] if old is None or new is None else list(changes(_mode(old), _mode(new)))
    if old and new and old.sha256 == new.sha256 and not changed:
        return None
    difference = FileDifference(
        path=path,
        before=old.file.size if old else None,
        after=new.file.size if new else None,
        changes=tuple(changed),
    )
    if old and new and old.sha256 == new.sha256:
        return difference
    kinds = {_kind(entry.head) for entry in (old, new) if entry}
    if kinds == {""}:
        return difference
    with ExitStack() as stack:
        old_path, new_path = (stack.enter_context(_on_disk(entry)) for entry in (old, new))
        ours, theirs = (
            with_archives(path, file, _archives(tree, stack))
            for file, tree in ((old_path, old_tree), (new_path, new_tree))
        )
        difference = replace(difference, changes=(*difference.changes, *moves(ours, theirs)))
        if not is_away(ours) and not is_away(theirs):
            difference = replace(difference, code=code.compare_code(ours, theirs))
        return (
            _with_library(difference, old_path, new_path)
            if kinds == {"elf"} and old_path and new_path
            else difference
        )


def _archives(tree: Mapping[str, _TreeEntry], stack: ExitStack) -> Archives:
    """The kpack archives of a tree by their paths, each put on disk where it is asked for."""
    return {
        path: lambda entry=entry: stack.enter_context(_on_disk(entry))  # type: ignore[misc]
        for path, entry in tree.items()
        if is_archive(entry.head)
    }


def _with_library(difference: FileDifference, old: Path, new: Path) -> FileDifference:
    """The difference of two files, with what differs in them as libraries."""
    old_facts, new_facts = (libraries.read_library(path, difference.path) for path in (old, new))
    difference = replace(
        difference,
        changes=(*difference.changes, *changes(old_facts.words, new_facts.words)),
        sections=changes(old_facts.sections, new_facts.sections),
        names=libraries.compare_names(old_facts, new_facts),
    )
    if difference.changes or difference.sections:
        return difference
    return replace(
        difference, changes=(ValueChange(what="headers, or bytes in no section", before="", after="other"),)
    )


def _kind(head: bytes) -> str:
    if head.startswith(MAGIC):
        return "elf"
    return "bundle" if may_hold_code(head) else ""


def _mode(entry: _TreeEntry) -> dict[str, str]:
    return {"may be run": "yes" if entry.file.mode & 0o111 else "no"}


@contextmanager
def _on_disk(entry: _TreeEntry | None) -> Iterator[Path | None]:
    """The file where it can be read at any place; None where it is not there, or holds nothing to see."""
    if entry is None or not _kind(entry.head):
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / PurePosixPath(entry.file.path).name
        with path.open("wb") as file:
            for piece in entry.file.pieces():
                file.write(piece)
        yield path


def _names(old: Path, new: Path) -> tuple[ValueChange, ...]:
    """What the file names of two wheels differ in."""
    if not old.name.endswith(".whl") or not new.name.endswith(".whl"):
        return ()
    old_name, new_name = parse_name(old.name), parse_name(new.name)
    parts = ("name", "version", "build", "python", "abi", "platform")
    return changes(
        {f"file name: {part}": getattr(old_name, part) for part in parts},
        {f"file name: {part}": getattr(new_name, part) for part in parts},
    )


def _metadata(old: Mapping[str, _TreeEntry], new: Mapping[str, _TreeEntry]) -> Iterator[ValueChange]:
    """What METADATA and WHEEL differ in, by header."""
    for name in _HEADERS:
        yield from changes(_headers(old, name), _headers(new, name))


def _headers(tree: Mapping[str, _TreeEntry], name: str) -> dict[str, str]:
    found_in = tree.get(f"*{DIST_INFO}/{name}")
    headers = Headers(found_in.file.read() if found_in else b"")
    fields = {f"{name}: {header}": "\n".join(headers.all(header)) for header in headers.names()}
    if headers.text:
        fields[f"{name}: text"] = f"{len(headers.text):,} bytes, {sha256_bytes(headers.text)[:12]}"
    return fields


def _written(old: Sequence[WheelFile], new: Sequence[WheelFile]) -> Iterator[str]:
    old_modes, new_modes = ({versionless(file.path): file.mode for file in files} for files in (old, new))
    if list(old_modes) != list(new_modes):
        yield "the order of the files"
    if old_modes != new_modes:
        yield "the modes of the files"
    yield "times, compression, or fields of the zip"


Archives = Mapping[str, Callable[[], Path | None]]
"""The archives of a wheel by their paths in it, each with what puts it on disk."""


def with_archives(path: str, file: Path | None, archives: Archives) -> FileCode | None:
    """The file, called `path` in its wheel, with those of the wheel's archives that hold code of it."""
    if file is None:
        return None
    with FileSource(file, subject=path) as source:
        binary = fat_binary(source, heads=True)
    if binary is None or binary.reference is None:
        return FileCode(file=file)
    matches = [
        archive
        for pattern in binary.reference.patterns(path)
        for place, opened in archives.items()
        if pattern.fullmatch(place) and (archive := opened())
    ]
    return FileCode(file=file, archives=tuple(matches), reference=binary.reference)


def is_away(code: FileCode | None) -> bool:
    """Whether a file's code lies in archives that the wheel does not have."""
    return code is not None and code.reference is not None and not code.archives


def moves(old: FileCode | None, new: FileCode | None) -> Iterator[ValueChange]:
    """That the code lies elsewhere than before, if both are there."""
    if old is None or new is None:
        return
    old_place, new_place = _location(old), _location(new)
    if old_place != new_place:
        yield ValueChange(what="GPU code", before=old_place, after=new_place)


def _location(code: FileCode) -> str:
    if code.reference is None:
        return "in the file"
    note = "" if code.archives else ", not in this wheel"
    return f"in kpack archives ({', '.join(code.reference.search)}{note})"
