"""What a wheel's libraries load, found: by what they need, by what they open by name, by what they read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from rocbase.errors import InputError
from rocwheel.wheels.needed import LibrarySearch, Linkage, NeededLibrary, closure, linkage_of, of_system
from rocwheel.wheels.repair.facts import Facts, Opened, matches
from rocwheel.wheels.repair.model import DataFile, Lacking, Request
from rocwheel.wheels.repair.opened import names_in
from rocwheel.wheels.repair.reads import gather
from rocwheel.wheels.repair.staying import Staying, is_meant

ASKED = "--include"
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
    roots = {one.path: finding.with_opened(one) for one in own if is_meant(one.path, request.only)}
    roots |= finding.included()
    programs: dict[str, Linkage] = {}
    while True:
        told = closure(roots | programs, finding.everywhere, stays=finding.stays, opened=finding.opens)
        gathered = gather(told.found.values(), request, facts, folder)
        more = {
            one.place: linkage
            for one in gathered.data
            if one.place not in programs and (linkage := linkage_of(one.source)) is not None
        }
        if not more:
            break
        programs |= more
    staying.used |= gathered.used
    staying.check_patterns(one.path for one in own)
    missing = [
        Lacking(name=name, wanted_by=told.wanted_by[name], why=finding.why_missing(name))
        for name in told.missing
    ]
    return FoundLibraries(
        libraries=told.found,
        wanted_by=told.wanted_by,
        opened=finding.opened,
        inside=finding.inside,
        programs=programs,
        data=gathered.data,
        dropped=gathered.dropped,
        missing=(*missing, *gathered.missing),
        without=(*finding.without.values(), *gathered.without),
        named=finding.named(told.found),
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

    told = load_ld_paths(Libc.GLIBC)
    return tuple(Path(folder) for folder in (*told["env"], *told["conf"]))


@dataclass(slots=True, kw_only=True)
class _Finding:
    """The questions that the search asks, and what comes up on the way."""

    own: Sequence[Own]
    request: Request
    facts: Facts
    staying: Staying
    given: LibrarySearch = field(init=False)
    everywhere: LibrarySearch = field(init=False)
    inside: dict[str, Own] = field(init=False)
    opened: dict[str, tuple[str, ...]] = field(default_factory=dict)
    without: dict[str, Lacking] = field(default_factory=dict)
    whys: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        folders = given_folders(self.request, self.facts)
        self.given = LibrarySearch(folders)
        system = system_folders() if self.request.system else ()
        self.everywhere = LibrarySearch(folders, system, self.given.stand_ins)
        names = {one.linkage.soname: one for one in self.own if one.linkage.soname}
        self.inside = names | {PurePosixPath(one.path).name: one for one in self.own}

    def stays(self, name: str) -> bool:
        """Whether a library is not brought in: it is in the wheel, or left to another."""
        return name in self.inside or self.staying.stays(name)

    def opens(self, library: NeededLibrary) -> list[str]:
        """The names that a library of ROCm opens and must find."""
        known = self.facts.known(library.file_name)
        if known is None or not known.opens:
            return []
        if library.file_name not in self.opened:
            literals = names_in(library.path)
            names = [name for one in known.opens for name in self._names(one, library, literals)]
            self.opened[library.file_name] = tuple(dict.fromkeys(names))
        return list(self.opened[library.file_name])

    def _names(self, one: Opened, library: NeededLibrary, literals: Iterable[str]) -> list[str]:
        """The names by which a library opens another; of several, those that are there."""
        named = [name for name in literals if matches(name, (one.name,))]
        candidates = named or self.given.matching(one.name, library)[-1:]
        there = [name for name in candidates if not self.stays(name) and self._there(name, library)]
        if there or (candidates and all(self.stays(name) for name in candidates)):
            return there
        lacking = Lacking(name=(candidates or [one.name])[0], wanted_by=(library.file_name,), why=one.why)
        if one.optional:
            self.without[f"{lacking.name} {library.file_name}"] = lacking
            return []
        self.whys[lacking.name] = one.why
        return [lacking.name]

    def _there(self, name: str, after: NeededLibrary) -> bool:
        """Whether a library is in the given folders, or one that has a version behind this name."""
        machine = after.linkage.machine
        if self.given.find(name, machine, after) is not None:
            return True
        for longer in self.given.matching(f"{name}.*", after):
            if self.given.find(longer, machine, after) is not None:
                self.given.stand_ins[name] = longer
                return True
        return False

    def with_opened(self, one: Own) -> Linkage:
        """What a library of the wheel needs, and those of ROCm's that it names and that are there."""
        names = [
            name
            for name in names_in(one.copy)
            if self.facts.known(name) is not None
            and name not in one.linkage.needed
            and not self.stays(name)
            and self.given.find(name, one.linkage.machine) is not None
        ]
        if names:
            self.opened[one.path] = tuple(names)
        return replace(one.linkage, needed=(*one.linkage.needed, *names))

    def named(self, found: Mapping[str, NeededLibrary]) -> tuple[Lacking, ...]:
        """Libraries that are there, and whose names others hold that nobody knows to open them."""
        told: dict[str, dict[str, None]] = {}
        for library in {one.path: one for one in found.values()}.values():
            for name in names_in(library.path):
                known = name in found or name in self.inside or name == library.file_name
                if known or of_system(name) or self.staying.why(name):
                    continue
                if self.given.find(name, library.linkage.machine, library) is not None:
                    told.setdefault(name, {})[library.file_name] = None
        return tuple(Lacking(name=name, wanted_by=tuple(who)) for name, who in sorted(told.items()))

    def included(self) -> dict[str, Linkage]:
        """Libraries that were asked for by name, as if somebody opened them."""
        names: list[str] = []
        for pattern in self.request.include:
            found = [name for name in self.given.matching(pattern) if not of_system(name)]
            if found:
                self.staying.used.add(pattern)
            for name in found:
                if why := self.facts.why_never(name):
                    raise InputError(
                        f"{name} cannot be bundled: {why}",
                        cause=f"--include {pattern} matches it",
                        next_step=f"leave out --include {pattern}, or give a narrower pattern",
                    )
            names += found
        if not names or not self.own:
            return {}
        self.opened[ASKED] = tuple(names)
        return {ASKED: Linkage(needed=tuple(names), machine=self.own[0].linkage.machine)}

    def why_missing(self, name: str) -> str:
        """What is known of a library that was not found."""
        wheel = self.facts.brought_by(name, [one.wheel for one in self.facts.elsewhere])
        if wheel:
            return f"{wheel} provides it, but this wheel does not list {wheel} as a requirement"
        return self.whys.get(name, "one of ROCm's libraries" if self.facts.known(name) else "")
