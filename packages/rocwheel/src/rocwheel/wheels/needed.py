"""What an ELF library needs: libraries, by which names and versions, from where; and the closure of that."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath

from rocwheel.wheels.elf import Elf
from rocwheel.wheels.source import ByteSource, FileSource

MOST_VERSIONS = 10_000
"""Most symbol versions that a file may want; real ones want some hundred."""

MOST_FOLDERS = 65_536
"""Most folders in an RPATH; those that Bazel writes have some hundred, and more than 4,096 characters."""

_KINDS = (2, 3)
"""e_type of programs and shared libraries."""

_IDENT = b"\x7fELF\x02\x01"
"""How 64-bit little-endian files begin."""

_HSA_ABI = 64
_NEEDED, _SONAME, _RPATH, _RUNPATH, _VERNEED, _VERNEEDNUM = 1, 14, 15, 29, 0x6FFFFFFE, 0x6FFFFFFF
_VERNEED_ROW = struct.Struct("<HHIII")
_VERSION = struct.Struct("<IHHII")


@dataclass(frozen=True, slots=True, kw_only=True)
class Linkage:
    """What the dynamic section of a library or program says.

    `rpath` and `runpath` are as written, `$ORIGIN` and all; `versions` has the symbol versions wanted of each
    library (GLIBC_2.34 of libc.so.6); `machine` is e_machine.
    """

    soname: str = ""
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    machine: int = 0

    @property
    def search_path(self) -> tuple[str, ...]:
        """The folders that the file itself names: RUNPATH makes the loader pass over RPATH (ld.so(8))."""
        return self.runpath or self.rpath


def linkage(source: ByteSource) -> Linkage | None:
    """What an ELF file needs.

    None for any other file, for GPU code, and for what is linked statically or not for 64 bits. Raises
    CheckError for one whose tables cannot be read.
    """
    if source.size < len(_IDENT) or source.read_at(0, len(_IDENT)) != _IDENT:
        return None
    elf = Elf(source)
    # an AMDGPU code object is a shared library too, of another loader
    if elf.kind not in _KINDS or elf.abi == _HSA_ABI or not elf.dynamic:
        return None
    return Linkage(
        soname=next(iter(elf.dynamic_strings(_SONAME)), ""),
        needed=tuple(dict.fromkeys(elf.dynamic_strings(_NEEDED))),
        rpath=_folders(elf, _RPATH),
        runpath=_folders(elf, _RUNPATH),
        versions=_versions(elf),
        machine=elf.machine,
    )


def linkage_of(path: Path) -> Linkage | None:
    """The same of a file on disk."""
    return linkage(FileSource(path))


def _folders(elf: Elf, tag: int) -> tuple[str, ...]:
    values = elf.dynamic_strings(tag)
    if sum(value.count(":") for value in values) > MOST_FOLDERS:
        raise elf.wrong(f"it names more than {MOST_FOLDERS:,} folders to search")
    return tuple(folder for value in values for folder in value.split(":") if folder)


def _versions(elf: Elf) -> dict[str, tuple[str, ...]]:
    """Source: Linux Standard Base, "Symbol Versioning", version requirements."""
    tags = dict(elf.dynamic)
    offset = elf.at_address(tags[_VERNEED]) if _VERNEED in tags else None
    versions: dict[str, tuple[str, ...]] = {}
    remaining = MOST_VERSIONS
    for _ in range(min(tags.get(_VERNEEDNUM, 0), MOST_VERSIONS)):
        if offset is None:
            break
        _, count, file, inner, following = _VERNEED_ROW.unpack(elf.source.read_at(offset, _VERNEED_ROW.size))
        names = []
        at_name = offset + inner
        for _ in range(count):
            remaining -= 1
            if remaining < 0:
                raise elf.wrong(f"it needs more than {MOST_VERSIONS:,} versions of symbols")
            *_, name, following_name = _VERSION.unpack(elf.source.read_at(at_name, _VERSION.size))
            names.append(elf.dynamic_string(name))
            at_name += following_name
        library = elf.dynamic_string(file)
        versions[library] = (*versions.get(library, ()), *names)
        offset += following
    return versions


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededLibrary:
    """A library outside of the wheel: the name by which it was asked for, the file, and what that says."""

    name: str
    path: Path
    linkage: Linkage

    @property
    def file_name(self) -> str:
        """The name under which the loader knows it."""
        soname = self.linkage.soname
        return soname if soname and "/" not in soname else self.path.name


@dataclass(frozen=True, slots=True)
class LibrarySearch:
    """Where libraries are looked for: first in a library's own folders, then here, then in the system's."""

    folders: Sequence[Path]
    system: Sequence[Path] = ()
    stand_ins: dict[str, str] = field(default_factory=dict)
    """Names that no file has -> the name of the file that is meant: a name without the version."""

    def find(self, name: str, machine: int, dependent: NeededLibrary | None = None) -> NeededLibrary | None:
        """The first library of that name for that machine; `dependent` is the one that wants it."""
        own = (
            origin_folders(dependent.linkage.search_path, dependent.path.parent)
            if dependent is not None
            else ()
        )
        adjacent = (dependent.path.parent,) if dependent is not None else ()
        for folder in (*own, *self.folders, *adjacent, *self.system):
            path = folder / self.stand_ins.get(name, name)
            candidate = linkage_of(path) if path.is_file() else None
            if candidate is not None and candidate.machine == machine:
                return NeededLibrary(name=name, path=path.resolve(), linkage=candidate)
        return None

    def matching(self, pattern: str, dependent: NeededLibrary | None = None) -> list[str]:
        """Names of files that match `pattern`, in the given folders and beside `dependent`."""
        own = (
            origin_folders(dependent.linkage.search_path, dependent.path.parent)
            if dependent is not None
            else ()
        )
        adjacent = (dependent.path.parent,) if dependent is not None else ()
        names = (
            path.name
            for folder in (*adjacent, *own, *self.folders)
            if folder.is_dir() and folder not in self.system
            for path in sorted(folder.iterdir())
            if fnmatchcase(path.name, pattern)
        )
        return list(dict.fromkeys(names))


def origin_folders(folders: Iterable[str], origin: Path) -> tuple[Path, ...]:
    """The folders of an RPATH on disk, without those that are relative or have tokens beside `$ORIGIN`."""
    resolved = []
    for folder in folders:
        text = folder.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", str(origin))
        if "$" not in text and text.startswith("/"):
            resolved.append(Path(text))
    return tuple(resolved)


def inside_folders(folders: Iterable[str], path: str) -> Iterator[str]:
    """The folders of an RPATH that lie in the wheel, seen from its top; `path` is the file that has it."""
    for folder in folders:
        text = folder.replace("${ORIGIN}", "$ORIGIN")
        head, _, relative = text.partition("$ORIGIN")
        if head or "$" in relative or (relative and not relative.startswith("/")):
            continue
        joined = os.path.normpath(PurePosixPath("/", path).parent.as_posix() + relative)
        # beyond the top, normpath stays at it: count instead
        if _depth(PurePosixPath(path).parent.as_posix(), relative) >= 0:
            yield joined.strip("/")


def _depth(folder: str, relative: str) -> int:
    """The least depth on the way from `folder` along `relative`; below zero where it leaves the wheel."""
    depth = lowest = len([part for part in folder.split("/") if part not in ("", ".")])
    for part in relative.split("/"):
        depth += -1 if part == ".." else (1 if part not in ("", ".") else 0)
        lowest = min(lowest, depth)
    return lowest


@cache
def policy_libraries() -> frozenset[str]:
    """Libraries that every system of the manylinux policies has, and the dynamic linker.

    Source: auditwheel's policy data, the newest policy (its lists only grow: PEP 600).
    """
    from auditwheel.architecture import Architecture
    from auditwheel.libc import Libc
    from auditwheel.policy import WheelPolicies

    policies = WheelPolicies(libc=Libc.GLIBC, arch=Architecture.x86_64)
    return frozenset(name for policy in policies for name in policy.whitelist)


def of_system(name: str) -> bool:
    """Whether a library comes from the system by manylinux policy, or is the dynamic linker."""
    return name in policy_libraries() or name.startswith(("ld-linux", "ld64.so"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Closure:
    """What libraries need: those found outside, by the name that was asked for, and those that were not.

    `wanted_by` says of each name who asks for it.
    """

    libraries: Mapping[str, NeededLibrary]
    missing: tuple[str, ...]
    wanted_by: Mapping[str, tuple[str, ...]]


def closure(
    roots: Mapping[str, Linkage],
    search: LibrarySearch,
    *,
    stays: Callable[[str], bool],
    opened: Callable[[NeededLibrary], Iterable[str]] = lambda _: (),
) -> Closure:
    """All that `roots` (path in the wheel -> linkage) need, and what that needs, and so on.

    `stays` says of a name that it is not brought in: it is in the wheel, the system's, or declared as another
    wheel's. `opened` gives names that a library opens by name and must find.
    """
    libraries: dict[str, NeededLibrary] = {}
    missing: dict[str, None] = {}
    wanted_by: dict[str, dict[str, None]] = {}
    machine = next((root.machine for root in roots.values()), 0)
    queue: list[tuple[str, str, NeededLibrary | None]] = [
        (name, path, None) for path, root in roots.items() for name in root.needed
    ]
    while queue:
        name, needed_by, dependent = queue.pop(0)
        if of_system(name) or stays(name):
            continue
        wanted_by.setdefault(name, {})[needed_by] = None
        if name in libraries:
            continue
        # a name with a slash is a path, which no search finds (ld.so(8)), and no name in a wheel
        library = search.find(name, machine, dependent) if "/" not in name else None
        if library is None:
            missing[name] = None
            continue
        missing.pop(name, None)
        libraries[name] = library
        needs = dict.fromkeys((*library.linkage.needed, *opened(library)))
        queue += [(need, library.file_name, library) for need in needs]
    return Closure(
        libraries=libraries,
        missing=tuple(missing),
        wanted_by={name: tuple(dependents) for name, dependents in wanted_by.items()},
    )
