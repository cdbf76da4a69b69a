"""Libraries compared whose code lies, before or after, in kpack archives: moved there is not removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rocwheel.wheels.devicecode.fatbin import fat_binary
from rocwheel.wheels.diff.code import FileCode
from rocwheel.wheels.diff.model import ValueChange
from rocwheel.wheels.source import FileSource

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
