"""What a lock asks of the world outside, and the answer of one who may not look: named, and pending."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rocwright.catalog.base import Base, BaseRelease, Provided
from rocwright.catalog.model import Component
from rocwright.catalog.place import GitPlace, ImagePlace, Place
from rocwright.catalog.provider import Provider
from rocwright.model.architecture import Architecture
from rocwright.plan.resolve.model import LockedComponent, LockedProvider, LockedPython, LockedRoot, Role
from rocwright.sources.places import describe, kind_of


class Upstream(Protocol):
    """Where exact versions, hashes and digests come from, for one architecture.

    Each answer raises NetworkError or FetchError.
    """

    @property
    def architecture(self) -> Architecture: ...

    def package_version(self, package: Provided) -> str:
        """The version of a component that the base brings along in a package."""

    def root(self, role: Role, base: Base, release: BaseRelease, packages: tuple[str, ...]) -> LockedRoot:
        """The exact packages of a root file system."""

    def component(self, component: Component, version: str, places: Sequence[Place]) -> LockedComponent:
        """The exact source of a component, from the first place that has it."""

    def python(self, version: str, requirements: tuple[str, ...]) -> LockedPython:
        """The exact Python packages that `requirements` ask for, and what these need."""

    def rocm(self, provider: Provider, version: str, targets: tuple[str, ...]) -> LockedProvider:
        """The exact files of a provider of ROCm; none where it is the base's packages or a recipe."""


class OfflineUpstream:
    """Nothing outside is asked: commits and digests are the catalog's; what a network tells is pending."""

    def __init__(self, architecture: Architecture = Architecture.X86_64) -> None:
        self.architecture = architecture

    def package_version(self, package: Provided) -> str:
        return package.version

    def root(self, role: Role, base: Base, release: BaseRelease, packages: tuple[str, ...]) -> LockedRoot:
        image = f"{release.image}@{release.digest}" if release.digest else release.image
        description = f"the packages to {role} of {base.name}:{release.name}"
        return LockedRoot(
            role=role,
            base=base.name,
            manager=base.manager,
            suite=release.name,
            architecture=base.architecture[self.architecture],
            wanted=packages,
            image=image,
            pending=f"{description}, and the digest of {release.image}"
            if image and not release.digest
            else description,
        )

    def component(self, component: Component, version: str, places: Sequence[Place]) -> LockedComponent:
        place = places[0]
        return LockedComponent(
            name=component.name,
            version=version,
            kind=kind_of(place),
            place=describe(place),
            commit=commit_of(place),
            subdir=getattr(place, "subdir", ""),
            series=getattr(place, "series", ()),
            packaging=getattr(place, "packaging", ()),
            pending=f"the sha256 of {component.name} {version}: {describe(place)}"
            + _downloads_note(component, version),
        )

    def python(self, version: str, requirements: tuple[str, ...]) -> LockedPython:
        pending = f"the Python packages for {', '.join(requirements)}, by hash" if requirements else ""
        return LockedPython(version=version, wanted=requirements, pending=pending)

    def rocm(self, provider: Provider, version: str, targets: tuple[str, ...]) -> LockedProvider:
        requirements = (
            tuple(archive.url for archive in provider.archives(version, targets))
            if provider.kind == "archive"
            else provider.requirements(version, targets)
        )
        exact = provider.kind in ("packages", "source")
        pending = "" if exact else f"the files of ROCm {version} from {provider.name}, by hash"
        return LockedProvider(name=provider.name, version=version, wanted=requirements, pending=pending)


def _downloads_note(component: Component, version: str) -> str:
    downloads = component.downloads(version)
    return f"; and {len(downloads)} files that it downloads, by hash" if downloads else ""


def commit_of(place: Place) -> str:
    """The git commit or image digest that a place names, empty where it names none."""
    match place:
        case GitPlace():
            return place.commit
        case ImagePlace():
            return place.digest
        case _:
            return ""
