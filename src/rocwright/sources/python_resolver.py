"""Resolve Python requirements by an index's pages and metadata. Nothing that the index serves is executed.

pip would build the source distribution that a wheel names by address (`Requires-Dist: x @ http://...`), as
the user who types `rocwright lock`: its `--only-binary` does not bind such requirements.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

from packaging.markers import default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name
from packaging.version import InvalidVersion, Version
from resolvelib import AbstractProvider, BaseReporter, ResolutionImpossible, ResolutionTooDeep, Resolver

from rocbase.errors import ConflictError, FetchError, InputError
from rocwheel.wheels import names

if TYPE_CHECKING:
    # importing it takes 130 ms, and a lock that is there needs none of it
    from pypi_simple import DistributionPackage

GLIBC = (*(f"_2_{minor}" for minor in range(34, 16, -1)), "2014", "2010", "1")
# Wheels for a glibc of at most 2.34, which every base of the catalog has.
PLATFORMS = (*(f"manylinux{glibc}_{{machine}}" for glibc in GLIBC), "linux_{machine}")

# Choices after which a search ends. The stacks of the catalog take less than 200.
MOST_ROUNDS = 20_000

MOST_REASONS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The requirements (PEP 508) that a distribution declares."""

    requires: tuple[str, ...] = ()


class Index(Protocol):
    """An index to resolve from. Its methods raise FetchError and NetworkError."""

    def packages(self, project: str) -> Sequence[DistributionPackage]:
        """Return the files of a project: its wheels, or its source distributions if it publishes no wheel."""

    def metadata(self, package: DistributionPackage) -> Metadata:
        """Return the metadata of one of these files."""

    def leaves(self, project: str) -> bool:
        """Return whether others provide the project: any file stands for its version and requires nothing."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The interpreter that files are for: CPython `version` (such as `3.13`) on Linux."""

    version: str
    machine: str

    def environment(self) -> dict[str, str]:
        """Return the values of markers (PEP 508)."""
        names = {"python_version": self.version, "python_full_version": f"{self.version}.0"}
        system = {"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux"}
        implementation = {"implementation_name": "cpython", "platform_python_implementation": "CPython"}
        own: Mapping[str, Any] = default_environment()
        return {
            **{name: str(value) for name, value in own.items()},
            **names,
            **system,
            **implementation,
            "implementation_version": f"{self.version}.0",
            "platform_machine": self.machine,
        }

    @cache  # noqa: B019 - a handful of values in a process
    def tags(self) -> Mapping[Tag, int]:
        """Return the tags of wheels that fit, with their rank, the best first."""
        version = tuple(map(int, self.version.split(".")))[:2]
        platforms = [name.format(machine=self.machine) for name in PLATFORMS]
        interpreter = f"cp{version[0]}{version[1]}"
        tags = [*cpython_tags(version, platforms=platforms)]
        tags += compatible_tags(version, interpreter, platforms)
        return {tag: rank for rank, tag in reversed([*enumerate(tags)])}

    def accepts(self, requires_python: str | None) -> bool:
        """Return whether a `Requires-Python` admits it. A value that is none admits every interpreter."""
        try:
            return SpecifierSet(requires_python or "").contains(f"{self.version}.0", prereleases=True)
        except ValueError:  # no specifier, or one of too many digits
            return True


@dataclass(frozen=True, slots=True)
class WheelCandidate:
    """A version of a project with some of its extras, and the file that it would come from."""

    project: str
    version: Version
    extras: frozenset[str]
    package: DistributionPackage


@dataclass(frozen=True, slots=True)
class PythonNeed:
    """A requirement and the file that has it. An empty `parent` means the caller."""

    requirement: Requirement
    parent: str = ""

    @property
    def project(self) -> str:
        return canonicalize_name(self.requirement.name)

    def __str__(self) -> str:
        return f"{self.parent} depends on {self.requirement}" if self.parent else str(self.requirement)


def solve(
    requirements: Sequence[Requirement], index: Index, python: Interpreter, pins: Mapping[str, str]
) -> list[DistributionPackage]:
    """Return one file for each project that `requirements` come to, without those left to others.

    Each project in `pins` is taken in that version if it is taken at all. Raises ConflictError if no set of
    versions fits, FetchError for a requirement that names an address, and the errors of `index`.
    """
    provider = _Provider(index, python, pins)
    try:
        result = Resolver(provider, BaseReporter()).resolve(
            map(PythonNeed, requirements), max_rounds=MOST_ROUNDS
        )
    except ResolutionImpossible as error:
        needs = dict.fromkeys(str(cause.requirement) for cause in error.causes)
        raise _conflict(requirements, python, [*needs]) from error
    except ResolutionTooDeep as error:
        raise _conflict(requirements, python, [f"no answer after {MOST_ROUNDS} choices"]) from error
    chosen = {candidate.project: candidate for candidate in result.mapping.values()}
    return [candidate.package for candidate in chosen.values() if not index.leaves(candidate.project)]


class _Provider(AbstractProvider[PythonNeed, WheelCandidate, tuple[str, frozenset[str]]]):
    """Tell resolvelib which files serve a requirement, and what these require."""

    def __init__(self, index: Index, python: Interpreter, pins: Mapping[str, str]) -> None:
        self._index, self._python = index, python
        self._pins: dict[str, SpecifierSet] = {
            canonicalize_name(name): _exactly(version) for name, version in pins.items()
        }
        self._environment = python.environment()
        self._versions: dict[str, dict[Version, DistributionPackage]] = {}

    def identify(self, requirement_or_candidate: PythonNeed | WheelCandidate) -> tuple[str, frozenset[str]]:
        if isinstance(requirement_or_candidate, WheelCandidate):
            return requirement_or_candidate.project, requirement_or_candidate.extras
        return requirement_or_candidate.project, frozenset(requirement_or_candidate.requirement.extras)

    def get_preference(
        self,
        identifier: tuple[str, frozenset[str]],
        resolutions: Mapping[Any, Any],
        candidates: Mapping[Any, Iterator[WheelCandidate]],
        information: Mapping[Any, Iterator[Any]],
        backtrack_causes: Sequence[Any],
    ) -> tuple[bool, bool, bool, str]:
        """Prefer the causes of a conflict, then exact versions, then any bound: the fewest choices first."""
        failed = any(cause.requirement.project == identifier[0] for cause in backtrack_causes)
        specifiers = [str(entry.requirement.requirement.specifier) for entry in information[identifier]]
        exact = any(text.startswith("==") and "*" not in text for text in specifiers)
        return not failed, not exact, not any(specifiers), identifier[0]

    def find_matches(
        self,
        identifier: tuple[str, frozenset[str]],
        requirements: Mapping[Any, Iterator[PythonNeed]],
        incompatibilities: Mapping[Any, Iterator[WheelCandidate]],
    ) -> list[WheelCandidate]:
        project, extras = identifier
        needs = [*requirements[identifier], *requirements.get((project, frozenset()), ())]
        bad = {candidate.version for candidate in incompatibilities[identifier]}
        specifier = self._pins.get(project, SpecifierSet())
        for need in needs:
            specifier &= need.requirement.specifier
        versions = self.files(project, specifier)
        fitting = sorted(
            (version for version in specifier.filter(versions) if version not in bad), reverse=True
        )
        return [WheelCandidate(project, version, extras, versions[version]) for version in fitting]

    def is_satisfied_by(self, requirement: PythonNeed, candidate: WheelCandidate) -> bool:
        return requirement.requirement.specifier.contains(candidate.version, prereleases=True)

    def get_dependencies(self, candidate: WheelCandidate) -> Iterable[PythonNeed]:
        if self._index.leaves(candidate.project):
            return []
        needs = []
        if candidate.extras:
            needs.append(PythonNeed(Requirement(f"{candidate.project}=={candidate.version}")))
        for text in self._index.metadata(candidate.package).requires:
            requirement = _parsed(text)
            if requirement is None:
                # a candidate that excludes itself: the search goes on to another version
                return [PythonNeed(Requirement(f"{candidate.project}!={candidate.version}"), text)]
            if self._applies(requirement, candidate.extras):
                _refuse_address(requirement, candidate.package)
                needs.append(PythonNeed(requirement, candidate.package.filename))
        return needs

    def _applies(self, requirement: Requirement, extras: frozenset[str]) -> bool:
        marker = requirement.marker
        return marker is None or any(
            marker.evaluate({**self._environment, "extra": extra}) for extra in extras or {""}
        )

    def files(self, project: str, specifier: SpecifierSet) -> dict[Version, DistributionPackage]:
        """Return the best file of each version; yanked ones only for a specifier that names the version."""
        if project not in self._versions:
            self._versions[project] = self._best_files(project)
        exact = {clause.version for clause in specifier if clause.operator in ("==", "===")}
        return {
            version: package
            for version, package in self._versions[project].items()
            if not package.is_yanked or str(version) in exact or package.version in exact
        }

    def _best_files(self, project: str) -> dict[Version, DistributionPackage]:
        best: dict[Version, DistributionPackage] = {}
        any_file = self._index.leaves(project)
        ranked = [
            (*self._ranked(package, any_file=any_file), package) for package in self._index.packages(project)
        ]
        for version, _, package in sorted(ranked, key=itemgetter(1)):
            if version is not None:
                best.setdefault(version, package)
        return best

    def _ranked(
        self, package: DistributionPackage, *, any_file: bool
    ) -> tuple[Version | None, tuple[int, ...]]:
        """Return the version of a file and its rank, the best least; no version for one that does not fit."""
        try:
            version = names.read_version(package.version or "")
        except InvalidVersion:
            return None, ()
        if any_file:
            return version, ()
        if not self._python.accepts(package.requires_python):
            return None, ()
        if package.package_type != "wheel":
            return version, (sys.maxsize,)
        try:
            _, _, build, tags = names.read_wheel_name(package.filename)
        except InvalidWheelFilename:
            return None, ()
        ranks = [self._python.tags()[tag] for tag in tags if tag in self._python.tags()]
        return (version, (min(ranks), -(build[0] if build else 0))) if ranks else (None, ())


def best_file(requirement: Requirement, index: Index, python: Interpreter) -> DistributionPackage | None:
    """Return the file that an installer takes for one requirement alone, None if none fits."""
    project = canonicalize_name(requirement.name)
    files = _Provider(index, python, {}).files(project, requirement.specifier)
    versions = [*requirement.specifier.filter(files)]
    return files[max(versions)] if versions else None


def _exactly(version: str) -> SpecifierSet:
    """Return the specifier of a version, or any version for a text that is none."""
    try:
        return SpecifierSet(f"=={version}")
    except InvalidSpecifier:
        return SpecifierSet()


def _parsed(text: str) -> Requirement | None:
    try:
        return names.read_requirement(text)
    except InvalidRequirement:
        return None


def _refuse_address(requirement: Requirement, package: DistributionPackage) -> None:
    if requirement.url:
        raise FetchError(
            f"{package.filename} requires {requirement.name} from {requirement.url}",
            cause="rocwright takes Python packages from an index alone: a file at an address could be a "
            "program that runs when it is built",
            next_step=f"pin another version of {package.project} in the recipe",
            subject=package.filename,
        )


def _conflict(
    requirements: Sequence[Requirement], python: Interpreter, reasons: Sequence[str]
) -> ConflictError:
    return ConflictError(
        f"no Python packages for Python {python.version} satisfy {', '.join(map(str, requirements))}",
        cause="; ".join(reasons[:2]) or "no version fits",
        detail="\n".join(reasons[:MOST_REASONS]),
        next_step="loosen `python` or a tool's range in the recipe",
    )


def read_requirement(text: str) -> Requirement:
    """Return what a requirement says. Raises InputError for none, and for one that names an address."""
    try:
        requirement = names.read_requirement(text)
        cause = "it names an address" if requirement.url else ""
    except InvalidRequirement as error:
        cause = str(error).splitlines()[0]
    if cause:
        raise InputError(
            f"{text!r} is not a Python requirement that an index can answer",
            cause=cause,
            next_step="correct `python` in the recipe; an example: setuptools<80",
        )
    return requirement
