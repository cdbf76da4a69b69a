"""Where ROCm comes from: distribution packages, AMD's, TheRock's wheels and tarballs, TheRock's source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rocbase.errors import InputError
from rocbase.model import Frozen
from rocwright.catalog.address import FileAddress
from rocwright.model.architecture import Architecture
from rocwright.model.versions import version_in

ProviderKind = Literal["packages", "wheels", "archive", "source"]
# The kinds, the one that costs a user least first.
KINDS: tuple[ProviderKind, ...] = get_args(ProviderKind)

# Final releases, or pre-releases by Python's words for them: candidates, nightly builds.
Releases = Literal["final", "rc", "a"]


# Where ROCm is taken to be without a word about it.
EVERYWHERE = (Architecture.X86_64,)


class Serves(Frozen):
    """Targets that a provider serves, in a range of ROCm's versions, on some bases (none named: on all) and
    architectures.

    `rebuilt` are the libraries that must be built for the target, because the provider's have no code for it.
    """

    versions: str = ""
    targets: tuple[str, ...]
    bases: tuple[str, ...] = ()
    architectures: tuple[Architecture, ...] = EVERYWHERE
    rebuilt: tuple[str, ...] = ()
    source: str
    confidence: str = ""


class Shelf(Frozen):
    """Where a provider keeps the releases of a range of versions: they moved from place to place.

    `archive` is the address of a tarball ("{version}" and "{family}" are filled in) and `listing` that of a
    page that lists them; `index` is the package index that has the wheels.
    """

    releases: Releases = "final"
    versions: str = ""
    archive: str = ""
    listing: str = ""
    index: str = ""
    source: str
    confidence: str = ""

    def holds(self, version: str) -> bool:
        """Whether a version is kept here."""
        parsed = Version(version)
        kind = parsed.pre[0] if parsed.pre else "dev" if parsed.is_devrelease else "final"
        return kind == self.releases and version_in(version, self.versions)

    def may_hold_newer(self, version: str) -> bool:
        """Whether its range goes beyond a version."""
        ends = (
            Version(clause.version)
            for clause in SpecifierSet(self.versions)
            if clause.operator in ("<", "<=")
        )
        return all(end > Version(version) for end in ends)


class Provider(Frozen):
    """A source of ROCm.

    `packages` are the base's or AMD's system packages, `wheels` Python packages from an index, `archive` a
    tarball, `source` a recipe of the catalog. `versions` are the versions of ROCm that it has, newest first;
    `shelf` says where tarballs and wheels of which versions are. `wanted` are the Python requirements of
    wheels ("{version}" is filled in, and one with "{target}" is there for each target), `family` is the word
    for each target in the address of a tarball. `notes` is the address of a version's notes. `setup` are
    shell commands before those of a recipe that needs ROCm: they make it be found. `windows` are commands of
    PowerShell that do so there, in an environment that has the wheels ($python is its Python).
    """

    name: str
    summary: str
    kind: ProviderKind
    versions: tuple[str, ...] = ()
    serves: tuple[Serves, ...] = ()
    wanted: tuple[str, ...] = ()
    shelf: tuple[Shelf, ...] = ()
    notes: str = ""
    family: dict[str, str] = {}
    setup: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    source: str

    def requirements(self, version: str, targets: Sequence[str]) -> tuple[str, ...]:
        """The Python requirements of its wheels for a version and these targets."""
        filled = [requirement.replace("{version}", version) for requirement in self.wanted]
        return tuple(
            dict.fromkeys(
                requirement.replace("{target}", target) for requirement in filled for target in targets
            )
        )

    def shelf_of(self, version: str) -> Shelf:
        """Where a version is kept. Raises InputError where nobody knows."""
        shelf = next((candidate for candidate in self.shelf if candidate.holds(version)), None)
        if shelf is None:
            ranges = ", ".join(f"{shelf.releases} {shelf.versions}".rstrip() for shelf in self.shelf)
            raise InputError(
                f"the catalog has no address for ROCm {version} of {self.name}",
                cause=f"it has addresses for: {ranges or 'none'}",
                next_step="choose another version, or add its address to the catalog",
            )
        return shelf

    def archives(self, version: str, targets: Sequence[str]) -> tuple[FileAddress, ...]:
        """The tarballs of a version for these targets. Raises InputError where they are not known."""
        missing = [target for target in targets if target not in self.family]
        if missing:
            raise InputError(
                f"{self.name} has no tarball for {', '.join(missing)}",
                cause=f"its tarballs are for the families of {', '.join(self.family)}",
                next_step="choose another provider, or add the family to its file in the catalog",
            )
        template = self.shelf_of(version).archive
        families = dict.fromkeys(self.family[target] for target in targets)
        return tuple(FileAddress(url=template.format(version=version, family=family)) for family in families)

    def without_code(
        self, targets: Sequence[str], version: str, base: str, architecture: Architecture
    ) -> dict[str, tuple[str, Serves]]:
        """Its libraries that have no code for one of the targets, with that target and what says so."""
        libraries: dict[str, tuple[str, Serves]] = {}
        for target in targets:
            fact = self.evidence(target, version, base, architecture)
            for library in fact.rebuilt if fact is not None else ():
                assert fact is not None
                libraries.setdefault(library, (target, fact))
        return libraries

    def evidence(
        self, target: str, version: str, base: str, architecture: Architecture = Architecture.X86_64
    ) -> Serves | None:
        """What says that this version serves the target on the base, or None where nothing does."""
        name, _, _ = base.partition(":")
        for entry in self.serves:
            applies = not entry.bases or base in entry.bases or name in entry.bases
            applies = applies and architecture in entry.architectures
            if target in entry.targets and applies and version_in(version, entry.versions):
                return entry
        return None
