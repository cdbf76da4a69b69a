"""The files that ROCm's libraries read: found where they lie, kept in the place where they are looked for."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rocwheel.wheels.devicecode.fatbin import reference_in
from rocwheel.wheels.devicecode.generic import covers
from rocwheel.wheels.devicecode.gpu import any_machine, machines_of
from rocwheel.wheels.devicecode.kpack_reference import PLACEHOLDER, SECTION
from rocwheel.wheels.needed import NeededLibrary
from rocwheel.wheels.repair.facts import Facts, Read, RocmLibrary, matches
from rocwheel.wheels.repair.model import DataFile, Lacking, Request
from rocwheel.wheels.source import FileSource

_ARCHIVE = re.compile(r"(?:\.\./)*(?:(?!\.\.)[\w.+-]+/)*[\w.+@-]+\.kpack", re.ASCII)
"""A search path that names files of one folder and no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Files to bring in, what is lacking, bytes left out by target, and the exclusions that matched."""

    data: tuple[DataFile, ...]
    missing: tuple[Lacking, ...]
    without: tuple[Lacking, ...]
    dropped: Mapping[str, int]
    used: frozenset[str]


def gather(libraries: Iterable[NeededLibrary], request: Request, facts: Facts, folder: str) -> Gathered:
    """All that the libraries read, for the targets asked for; `folder` is where they go in the wheel."""
    names = {library.file_name: library for library in libraries}
    readers = [
        (reads, name, library.path) for name, library in names.items() if (reads := facts.elf_library(name))
    ]
    packed = archives((name, library.path) for name, library in names.items())
    return gather_known([*readers, *packed], request, folder)


def archives(libraries: Iterable[tuple[str, Path]]) -> Iterator[tuple[RocmLibrary, str, Path]]:
    """The kpack archives that the code of libraries (name, file) lies in, as files that they read."""
    for name, path in libraries:
        if reads := _archives(name, path):
            yield reads, name, path


def _archives(name: str, path: Path) -> RocmLibrary | None:
    with FileSource(path, subject=name) as source:
        reference = reference_in(source)
    archive_matches = [_ARCHIVE.fullmatch(pattern) for pattern in reference.search] if reference else []
    places = tuple(match[0].replace(PLACEHOLDER, "*") for match in archive_matches if match)
    if not places:
        return None
    reason = "the code of the library, for each GPU in an archive"
    return RocmLibrary(name=name, source=(SECTION,), reads=(Read(at=places, why=reason),))


def gather_known(readers: Iterable[tuple[RocmLibrary, str, Path]], request: Request, folder: str) -> Gathered:
    """The same of (what is known, file name, file)."""
    data: dict[str, DataFile] = {}
    missing: list[Lacking] = []
    without: list[Lacking] = []
    dropped: Counter[str] = Counter()
    used: set[str] = set()
    for library, name, path in readers:
        for read in library.reads:
            files = list(_files(read, path.parent, folder))
            selected = []
            for place, file in files:
                pattern = next(
                    (pattern for pattern in request.exclude if matches(place, (pattern, f"*/{pattern}"))), ""
                )
                if pattern:
                    used.add(pattern)
                elif is_for(_inner(place, read), request.targets):
                    selected.append(place)
                    data[place] = DataFile(
                        place=place, source=file, of=name, targets=targets_named(_inner(place, read))
                    )
                else:
                    size = file.stat().st_size
                    dropped.update(dict.fromkeys(targets_named(_inner(place, read)), size))
            lacking = list(
                _lacking(read, name, [_inner(place, read) for place in selected], request.targets, files)
            )
            (without if read.optional else missing).extend(lacking)
    return Gathered(
        data=tuple(data[place] for place in sorted(data)),
        missing=tuple(missing),
        without=tuple(without),
        dropped=dict(sorted(dropped.items())),
        used=frozenset(used),
    )


def _inner(place: str, read: Read) -> str:
    """The part of a place that may name a target: the folder of a target's own ROCm must not count."""
    for pattern in read.at:
        _, prefix, tail = place.partition(pattern.removeprefix("../").partition("*")[0])
        if prefix:
            return prefix + tail
    return place


def _lacking(
    read: Read, name: str, selected: list[str], targets: tuple[str, ...], files: list[tuple[str, Path]]
) -> Iterator[Lacking]:
    if not files:
        yield Lacking(name=read.at[0], wanted_by=(name,), why=read.why)
        return
    for target in targets:
        if not covered([_inner(place, read) for place, _ in files], target):
            available = sorted({gpu for place, _ in files for gpu in targets_named(_inner(place, read))})
            yield Lacking(
                name=f"{read.at[0]} for {target}",
                wanted_by=(name,),
                why=f"{read.why}; here for {', '.join(available)}",
            )


def _files(read: Read, origin: Path, folder: str) -> Iterator[tuple[str, Path]]:
    """(place in the wheel, file on disk) of all that is read."""
    located = [(place, place) for pattern in read.at for place in _places(pattern, origin)]
    if not located:
        located = [(read.at[0], place) for pattern in read.also for place in _places(pattern, origin)][:1]
    for destination, place in located:
        top = origin / place
        for file in _under(top):
            inner = file.relative_to(top).as_posix()
            yield (
                os.path.normpath(
                    f"{folder}/{destination}/{inner}" if inner != "." else f"{folder}/{destination}"
                ),
                file,
            )


def _places(pattern: str, origin: Path) -> list[str]:
    """Where a pattern leads, seen from a folder."""
    up = pattern.count("../")
    top = origin.joinpath(*[".."] * up)
    inner = pattern.removeprefix("../" * up)
    return sorted("../" * up + path.relative_to(top).as_posix() for path in top.glob(inner))


def _under(top: Path) -> Iterator[Path]:
    if top.is_file():
        yield top
        return
    for parent, folders, names in os.walk(top):
        folders.sort()
        for name in sorted(names):
            file = Path(parent, name)
            if file.is_file():
                yield file


_FAMILY = re.compile(r"gfx[0-9a-f]*[xX]+")


def targets_named(path: str) -> tuple[str, ...]:
    """The targets in a path: gfx90a in gfx90a68.kdb (68 counts compute units), gfx11xx for a family."""
    families = _FAMILY.findall(path)
    machines = re.findall(any_machine(), _FAMILY.sub("", path))
    return tuple(dict.fromkeys((*(family.lower() for family in families), *machines)))


def is_for(path: str, targets: Iterable[str]) -> bool:
    """Whether a file serves one of `targets` (with or without features), or names none."""
    named = targets_named(path)
    names = [target.partition(":")[0] for target in targets]
    return not named or not names or any(_serves(target, name) for target in named for name in names)


def covered(paths: Iterable[str], target: str) -> bool:
    """Whether files are there for a target; also where none of them names any target."""
    named = [targets_named(path) for path in paths]
    name = target.partition(":")[0]
    return not any(named) or any(_serves(named_target, name) for targets in named for named_target in targets)


def _serves(named: str, target: str) -> bool:
    return target in machines_of(named) or target in covers(named)
