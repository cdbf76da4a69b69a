"""What a wheel's libraries load, found: by what they need, by what they open by name, by what they read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from rocbase.errors import InputError
from rocwheel.wheels.elf import Elf
from rocwheel.wheels.needed import LibrarySearch, Linkage, NeededLibrary, closure, linkage_of, of_system
from rocwheel.wheels.repair.facts import Facts, Opened, matches
from rocwheel.wheels.repair.model import DataFile, Lacking, Request
from rocwheel.wheels.repair.reads import gather
from rocwheel.wheels.repair.staying import Staying, is_meant
from rocwheel.wheels.source import FileSource

INCLUDED = "--include"
"""Who wants what was asked for on the command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """An ELF file of the wheel: its path there, where it is installed, a copy on disk, what it says."""

    path: str
    installed: str
    copy: Path
    linkage: Linkage


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLibraries:
    """All that was found: `libraries` and `wanted_by` by the names asked for, `opened` by who opens."""

    libraries: Mapping[str, NeededLibrary]
    wanted_by: Mapping[str, tuple[str, ...]]
    opened: Mapping[str, tuple[str, ...]]
    inside: Mapping[str, Own]
    programs: Mapping[str, Linkage]
    data: tuple[DataFile, ...]
    dropped: Mapping[str, int]
    missing: tuple[Lacking, ...]
    without: tuple[Lacking, ...]
    named: tuple[Lacking, ...]
    kept_out: Mapping[str, str]

    @property
    def opened_names(self) -> frozenset[str]:
        """Every name that something opens."""
        return frozenset(name for names in self.opened.values() for name in names)


def find(
    own: Sequence[Own], request: Request, facts: Facts, *, requires: Iterable[str], folder: str
) -> FoundLibraries:
    """All that `own` load which is neither in the wheel nor the system's nor another wheel's.

    `requires` are the wheels that this one requires, `folder` is where libraries go. Raises InputError where
    an exclusion or inclusion matches nothing.
    """
    staying = Staying(request=request, facts=facts, requires=tuple(requires))
    finding = _Finding(own=own, request=request, facts=facts, staying=staying)
    roots = {
        library.path: finding.with_opened(library) for library in own if is_meant(library.path, request.only)
    }
    roots |= finding.included()
    programs: dict[str, Linkage] = {}
    while True:
        resolved = closure(roots | programs, finding.everywhere, stays=finding.stays, opened=finding.opens)
        gathered = gather(resolved.libraries.values(), request, facts, folder)
        added = {
            file.place: linkage
            for file in gathered.data
            if file.place not in programs and (linkage := linkage_of(file.source)) is not None
        }
        if not added:
            break
        programs |= added
    staying.used |= gathered.used
    staying.check_patterns(library.path for library in own)
    missing = [
        Lacking(name=name, wanted_by=resolved.wanted_by[name], why=finding.why_missing(name))
        for name in resolved.missing
    ]
    return FoundLibraries(
        libraries=resolved.libraries,
        wanted_by=resolved.wanted_by,
        opened=finding.opened,
        inside=finding.inside,
        programs=programs,
        data=gathered.data,
        dropped=gathered.dropped,
        missing=(*missing, *gathered.missing),
        without=(*finding.without.values(), *gathered.without),
        named=finding.named(resolved.libraries),
        kept_out=staying.kept_out,
    )


def given_folders(request: Request, facts: Facts) -> tuple[Path, ...]:
    """The folders of libraries in ROCm's roots, the roots themselves, and those to be searched besides."""
    inside = [root / folder for root in request.roots for folder in facts.layout.linux]
    folders = dict.fromkeys((*inside, *request.roots, *request.search))
    return tuple(folder for folder in folders if folder.is_dir())


def system_folders() -> tuple[Path, ...]:
    """The folders that this machine's loader searches, those of LD_LIBRARY_PATH first."""
    from auditwheel.lddtree import load_ld_paths
    from auditwheel.libc import Libc

    paths = load_ld_paths(Libc.GLIBC)
    return tuple(Path(folder) for folder in (*paths["env"], *paths["conf"]))


@dataclass(slots=True, kw_only=True)
class _Finding:
    """The questions that the search asks, and what comes up on the way."""

    own: Sequence[Own]
    request: Request
    facts: Facts
    staying: Staying
    search: LibrarySearch = field(init=False)
    everywhere: LibrarySearch = field(init=False)
    inside: dict[str, Own] = field(init=False)
    opened: dict[str, tuple[str, ...]] = field(default_factory=dict)
    without: dict[str, Lacking] = field(default_factory=dict)
    whys: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        folders = given_folders(self.request, self.facts)
        self.search = LibrarySearch(folders)
        system = system_folders() if self.request.system else ()
        self.everywhere = LibrarySearch(folders, system, self.search.stand_ins)
        names = {library.linkage.soname: library for library in self.own if library.linkage.soname}
        self.inside = names | {PurePosixPath(library.path).name: library for library in self.own}

    def stays(self, name: str) -> bool:
        """Whether a library is not brought in: it is in the wheel, or left to another."""
        return name in self.inside or self.staying.stays(name)

    def opens(self, library: NeededLibrary) -> list[str]:
        """The names that a library of ROCm opens and must find."""
        rocm_library = self.facts.elf_library(library.file_name)
        if rocm_library is None or not rocm_library.opens:
            return []
        if library.file_name not in self.opened:
            literals = names_in(library.path)
            names = [name for opened in rocm_library.opens for name in self._names(opened, library, literals)]
            self.opened[library.file_name] = tuple(dict.fromkeys(names))
        return list(self.opened[library.file_name])

    def _names(self, opened: Opened, library: NeededLibrary, literals: Iterable[str]) -> list[str]:
        """The names by which a library opens another; of several, those that are there."""
        named = [name for name in literals if matches(name, (opened.name,))]
        candidates = named or self.search.matching(opened.name, library)[-1:]
        present = [name for name in candidates if not self.stays(name) and self._is_present(name, library)]
        if present or (candidates and all(self.stays(name) for name in candidates)):
            return present
        lacking = Lacking(
            name=(candidates or [opened.name])[0], wanted_by=(library.file_name,), why=opened.why
        )
        if opened.optional:
            self.without[f"{lacking.name} {library.file_name}"] = lacking
            return []
        self.whys[lacking.name] = opened.why
        return [lacking.name]

    def _is_present(self, name: str, dependent: NeededLibrary) -> bool:
        """Whether a library is in the given folders, or one that has a version behind this name."""
        machine = dependent.linkage.machine
        if self.search.find(name, machine, dependent) is not None:
            return True
        for longer in self.search.matching(f"{name}.*", dependent):
            if self.search.find(longer, machine, dependent) is not None:
                self.search.stand_ins[name] = longer
                return True
        return False

    def with_opened(self, library: Own) -> Linkage:
        """What a library of the wheel needs, and those of ROCm's that it names and that are there."""
        names = [
            name
            for name in names_in(library.copy)
            if self.facts.elf_library(name) is not None
            and name not in library.linkage.needed
            and not self.stays(name)
            and self.search.find(name, library.linkage.machine) is not None
        ]
        if names:
            self.opened[library.path] = tuple(names)
        return replace(library.linkage, needed=(*library.linkage.needed, *names))

    def named(self, libraries: Mapping[str, NeededLibrary]) -> tuple[Lacking, ...]:
        """Libraries that are there, and whose names others hold that nobody knows to open them."""
        dependents: dict[str, dict[str, None]] = {}
        for library in {library.path: library for library in libraries.values()}.values():
            for name in names_in(library.path):
                present = name in libraries or name in self.inside or name == library.file_name
                if present or of_system(name) or self.staying.reason(name):
                    continue
                if self.search.find(name, library.linkage.machine, library) is not None:
                    dependents.setdefault(name, {})[library.file_name] = None
        return tuple(Lacking(name=name, wanted_by=tuple(files)) for name, files in sorted(dependents.items()))

    def included(self) -> dict[str, Linkage]:
        """Libraries that were asked for by name, as if somebody opened them."""
        names: list[str] = []
        for pattern in self.request.include:
            matched = [name for name in self.search.matching(pattern) if not of_system(name)]
            if matched:
                self.staying.used.add(pattern)
            for name in matched:
                if reason := self.facts.why_never(name):
                    raise InputError(
                        f"{name} cannot be bundled: {reason}",
                        cause=f"--include {pattern} matches it",
                        next_step=f"leave out --include {pattern}, or give a narrower pattern",
                    )
            names += matched
        if not names or not self.own:
            return {}
        self.opened[INCLUDED] = tuple(names)
        return {INCLUDED: Linkage(needed=tuple(names), machine=self.own[0].linkage.machine)}

    def why_missing(self, name: str) -> str:
        """What is known of a library that was not found."""
        wheel = self.facts.brought_by(name, [provider.wheel for provider in self.facts.elsewhere])
        if wheel:
            return f"{wheel} provides it, but this wheel does not list {wheel} as a requirement"
        return self.whys.get(name, "one of ROCm's libraries" if self.facts.elf_library(name) else "")


_SECTIONS = (".rodata", ".rodata.str1.1", ".data.rel.ro")
_NAME = re.compile(rb"(?<![\w./%+-])(lib[A-Za-z0-9_+-]{1,100}\.so(?:\.[0-9]{1,10}){0,4})\0")
_LONGEST = 256


def names_in(path: Path) -> tuple[str, ...]:
    """Whole strings in an ELF file's constants that look like a library's file name, in order, once each.

    What is made from parts at run time is not seen. Raises CheckError where the tables cannot be read.
    """
    elf = Elf(FileSource(path))
    names: dict[str, None] = {}
    for section in (section for name in _SECTIONS for section in elf.named(name)):
        buffer = b""
        for piece in elf.source.chunks(section.offset, section.size):
            buffer += piece
            names |= dict.fromkeys(match[1].decode() for match in _NAME.finditer(buffer))
            buffer = buffer[-_LONGEST:]
    return tuple(names)
