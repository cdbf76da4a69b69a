"""Finds what replaces a Python package on an AMD GPU: published wheels, another package, a build."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Release
from rocwright.catalog.place import WheelsPlace
from rocwright.doctor.requirements.facts import PackageFact
from rocwright.doctor.requirements.lists import Entry, pin_of
from rocwright.model.versions import version_in
from rocwright.plan.resolve.constraints import refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitute:
    """A requirement to `write`, from an `index` if it is not the usual one; else a command, or advice.

    `python` is the range of interpreters that it is for, and `brings` names packages that come with it.
    """

    write: str = ""
    index: str = ""
    python: str = ""
    build: str = ""
    advice: str = ""
    brings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitutes:
    """Finds substitutes in a catalog for one GPU."""

    catalog: Catalog
    gpu: str

    def find(self, row: PackageFact | None, name: str, specifier: str = "") -> Substitute:
        """Return what replaces a package, in a version of the specifier if there is one."""
        if row is None:
            return Substitute(advice="no build for AMD is known: leave it out")
        published = [*self._published(row, name)]
        fitting = [
            (own, release)
            for own, release in published
            if version_in(pin_of(own).partition("+")[0] or "0", specifier)
        ]
        for own, release in (*fitting, *published):
            place, needs = _place(release), dict(release.needs)
            python = needs.pop("python", "")
            # what is installed beside another component brings no torch of its own
            guard = () if needs else self.catalog.components[row.component].guard
            wheels = {canonicalize_name(Requirement(wheel).name) for wheel in place.of([self.gpu], "").wheels}
            brings = tuple(name for name in guard if name not in wheels)
            return Substitute(write=str(own), index=place.index, python=python, brings=brings)
        if row.write:
            return Substitute(write=row.write)
        stack = self.catalog.stacks.get(row.stack)
        if stack and any(row_of.gpu == self.gpu for row_of in stack.row):
            return Substitute(build=f"rocwright build {stack.name} --gpu {self.gpu}")
        return Substitute(advice=row.advice or f"no build for {self.gpu} is known: leave it out")

    def _published(self, row: PackageFact, name: str) -> Iterator[tuple[Requirement, Release]]:
        """Yield the requirements by which releases for the GPU take a package, the first ones first."""
        component = self.catalog.components.get(row.component)
        for release in component.release if component else ():
            if not refusals(release, [self.gpu]) and (own := self._requirement(release, name)):
                yield own, release

    def _requirement(self, release: Release, name: str) -> Requirement | None:
        requirements = map(Requirement, _place(release).of([self.gpu], "").wheels)
        return next((own for own in requirements if canonicalize_name(own.name) == name), None)

    def fault(self, row: PackageFact | None, entry: Entry, name: str) -> str | None:
        """Return why a version that the row's component publishes is not for the GPU; None for any other."""
        component = self.catalog.components.get(row.component) if row else None
        for release in component.release if component and entry.requirement else ():
            own = self._requirement(release, name)
            if own is None or not entry.pin or pin_of(own) != entry.pin:
                continue
            if reasons := refusals(release, [self.gpu]):
                return f"not for {reasons[0]}"
            assert entry.requirement is not None
            lacks = own.extras - {canonicalize_name(extra) for extra in entry.requirement.extras}
            return f"lacks the code for {self.gpu}" if lacks else ""
        return None


def _place(release: Release) -> WheelsPlace:
    return next(place for place in release.places if isinstance(place, WheelsPlace))
