"""Where ROCm comes from: distribution packages, AMD's, TheRock's wheels and tarballs, TheRock's source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from rocwright.catalog.address import Address
from rocwright.errors import InputError
from rocwright.models import Frozen
from rocwright.resolve.versions import version_in

ProviderKind = Literal["packages", "wheels", "archive", "source"]
KINDS: tuple[ProviderKind, ...] = get_args(ProviderKind)
"""The kinds, the one that costs a user least first."""

ANY = "any"


class Serves(Frozen):
    """Targets that a provider serves, in a range of ROCm's versions, on some bases (none named: on all).

    `rebuilt` are the libraries that must be built for the target, because the provider's have no code for it.
    """

    versions: str = ""
    targets: tuple[str, ...]
    bases: tuple[str, ...] = ()
    rebuilt: tuple[str, ...] = ()
    source: str
    confidence: str = ""


class Provider(Frozen):
    """A source of ROCm.

    `packages` are the base's or AMD's system packages, `wheels` Python packages from an index, `archive` a
    tarball, `source` a recipe of the catalog. `versions` are the versions of ROCm that it has, newest first;
    `wanted` the Python requirements of wheels ("{version}" is filled in, and one with "{target}" is there for
    each target), `index` the address of their index by target, or under "any" for all others.
    `notes` is the address of a version's notes, `listing` that of a page that lists its tarballs.
    `archive` is the address of a tarball ("{version}" and "{family}" are filled in), `family` the word for
    each target in it. `setup` are shell commands before those of a recipe that needs ROCm: they make it be
    found.
    """

    name: str
    summary: str
    kind: ProviderKind
    versions: tuple[str, ...] = ()
    serves: tuple[Serves, ...] = ()
    wanted: tuple[str, ...] = ()
    index: dict[str, str] = {}
    archive: str = ""
    listing: str = ""
    notes: str = ""
    family: dict[str, str] = {}
    setup: tuple[str, ...] = ()
    source: str

    def requirements(self, version: str, targets: Sequence[str]) -> tuple[str, ...]:
        """The Python requirements of its wheels for a version and these targets."""
        filled = [one.replace("{version}", version) for one in self.wanted]
        return tuple(dict.fromkeys(one.replace("{target}", target) for one in filled for target in targets))

    def indexes(self, targets: Sequence[str]) -> tuple[str, ...]:
        """The addresses of the indexes that have the wheels for these targets."""
        found = (self.index.get(target, self.index.get(ANY, "")) for target in targets)
        return tuple(sorted({one for one in found if one}))

    def archives(self, version: str, targets: Sequence[str]) -> tuple[Address, ...]:
        """The tarballs of a version for these targets. Raises InputError for a target without a family."""
        missing = [target for target in targets if target not in self.family]
        if missing:
            raise InputError(
                f"{self.name} has no tarball for {', '.join(missing)}",
                cause=f"it knows the families of {', '.join(self.family)}",
                next_step="choose another provider, or add the family to the catalog",
            )
        families = dict.fromkeys(self.family[target] for target in targets)
        return tuple(Address(url=self.archive.format(version=version, family=one)) for one in families)

    def evidence(self, target: str, version: str, base: str) -> Serves | None:
        """What says that this version serves the target on the base, or None where nothing does."""
        name, _, _ = base.partition(":")
        for one in self.serves:
            here = not one.bases or base in one.bases or name in one.bases
            if target in one.targets and here and version_in(version, one.versions):
                return one
        return None
