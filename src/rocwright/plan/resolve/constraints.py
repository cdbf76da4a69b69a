"""Which versions fit together: constraints of the catalog, pins of the user, what the base provides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from resolvelib import AbstractProvider, BaseReporter, ResolutionImpossible, Resolver

from rocbase.errors import ConflictError, InputError
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Component, Release
from rocwright.plan.resolve.aliases import like
from rocwright.plan.resolve.validate import ANOTHER_BASE

# Choices tried before a search is given up; the catalog's own stacks take less than a hundred.
MOST_ROUNDS = 10_000


@dataclass(frozen=True, slots=True)
class Requirement:
    """`who` wants `name` in a version of `specifier`, and the `source` of that fact."""

    name: str
    specifier: str
    who: str
    source: str = ""

    def __str__(self) -> str:
        text = f"{self.who} needs {self.name} {self.specifier or '(any version)'}"
        return f"{text}   [{self.source}]" if self.source else text


@dataclass(frozen=True, slots=True)
class VersionCandidate:
    """A version that can be had: from the catalog's releases, or `provided` by the base."""

    name: str
    version: str
    provided: str = ""


def solve(
    catalog: Catalog,
    requested: Sequence[str],
    pins: Mapping[str, str],
    provided: Mapping[str, Sequence[VersionCandidate]],
    targets: Sequence[str] = (),
    constraints: Sequence[Requirement] = (),
    prefer: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, VersionCandidate]:
    """One version of each component wanted and of all that they need, serving all of `targets`.

    Versions that are known to be good go first, then the newest; before all others those in `prefer`, where
    they fit. The `constraints` bind what takes part. `provided` maps a component to what the base or a
    provider of ROCm has of it, the best first. Raises InputError for an unknown component or version
    (with the nearest), ConflictError with the chain of reasons.
    """
    for name, version in pins.items():
        _check_pin(catalog, name, version, provided)

    def resolve(pins: Mapping[str, str]) -> dict[str, VersionCandidate]:
        requirements = [Requirement(name, "", "the stack") for name in requested]
        requirements += [Requirement(name, f"=={each}", "rocwright.toml") for name, each in pins.items()]
        provider = _Provider(catalog, provided, targets, requested, constraints, prefer)
        return dict(Resolver(provider, BaseReporter()).resolve(requirements, max_rounds=MOST_ROUNDS).mapping)

    def frees(name: str) -> bool:
        with suppress(ResolutionImpossible):
            return bool(resolve({other: version for other, version in pins.items() if other != name}))
        return False

    try:
        return resolve(pins)
    except ResolutionImpossible as error:
        # the solver names what it met last, which may be far from the pin that leaves no answer
        at_fault = [name for name in pins if frees(name)]
        raise _conflict(error, pins, at_fault, provided, catalog, targets, requested, constraints) from error


def _check_pin(
    catalog: Catalog, name: str, version: str, provided: Mapping[str, Sequence[VersionCandidate]]
) -> None:
    try:
        SpecifierSet(f"=={version}")
    except InvalidSpecifier as error:
        raise InputError(
            f"{version!r} is not a version of {name}",
            cause="versions look like 0.21.0",
            next_step="correct [versions] in rocwright.toml",
        ) from error
    if name in provided:
        return
    versions = [release.version for release in catalog.component(name).release]
    if not any(Version(release) in SpecifierSet(f"=={version}") for release in versions):
        near = nearest_version(version, versions)
        raise InputError(
            f"{name} {version} is not known",
            cause=f"the catalog has {name} {', '.join(versions)}",
            next_step=f"use {near}, add the release to {name}.toml, or take over the facts of one: "
            f"--set '{name}={like(version, near)}'",
        )


def nearest_version(version: str, versions: Sequence[str]) -> str:
    """The known version closest to `version`, part by part."""
    try:
        target = Version(version).release
    except InvalidVersion:
        return versions[-1]

    def distance(candidate: str) -> tuple[int, ...]:
        release = Version(candidate).release
        width = max(len(release), len(target))
        return tuple(
            abs(a - b)
            for a, b in zip(
                release + (0,) * (width - len(release)), target + (0,) * (width - len(target)), strict=True
            )
        )

    return min(versions, key=distance)


class _Provider(AbstractProvider[Requirement, VersionCandidate, str]):
    def __init__(
        self,
        catalog: Catalog,
        provided: Mapping[str, Sequence[VersionCandidate]],
        targets: Sequence[str],
        requested: Sequence[str],
        constraints: Sequence[Requirement] = (),
        prefer: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.catalog = catalog
        self.held, self.prefer = constraints, prefer
        self.provided = provided
        self.targets = targets
        self.wanted = requested
        self.heights: dict[str, int] = {}

    def height(self, name: str, above: frozenset[str] = frozenset()) -> int:
        """How many components lie below this one: 0 for what needs nothing, or is provided."""
        if name in self.heights or name in above:
            return self.heights.get(name, 0)
        needs: set[str] = set()
        if name not in self.provided and name in self.catalog.components:
            recipe = self.catalog.component(name)
            needs = {
                need for release in recipe.release for need in recipe.takes(release.version, self.wanted)
            }
        self.heights[name] = max((1 + self.height(need, above | {name}) for need in needs), default=0)
        return self.heights[name]

    def identify(self, requirement_or_candidate: Requirement | VersionCandidate) -> str:
        return requirement_or_candidate.name

    def get_preference(
        self, identifier: str, resolutions: Any, candidates: Any, information: Any, backtrack_causes: Any
    ) -> tuple[bool, bool, int, str]:
        # what leaves no choice, then what others stand on: a dead end is found where its reason is
        choice = sum(1 for _ in candidates[identifier]) > 1
        return identifier not in self.provided, choice, self.height(identifier), identifier

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Requirement]],
        incompatibilities: Mapping[str, Iterator[VersionCandidate]],
    ) -> Iterable[VersionCandidate]:
        refused = {candidate.version for candidate in incompatibilities[identifier]}
        specifiers = [requirement.specifier for requirement in requirements[identifier]]
        specifiers += [constraint.specifier for constraint in self.held if constraint.name == identifier]
        liked = self.prefer.get(identifier)
        return [
            candidate
            for candidate in sorted(
                self._candidates(identifier), key=lambda candidate: candidate.version != liked
            )
            if candidate.version not in refused
            and all(
                Version(candidate.version) in SpecifierSet(specifier, prereleases=True)
                for specifier in specifiers
            )
        ]

    def _candidates(self, name: str) -> list[VersionCandidate]:
        if name in self.provided:
            return list(self.provided[name])
        if name not in self.catalog.components:
            return []
        recipe = self.catalog.component(name)
        serving = [
            release
            for release in recipe.release
            if not refusals(release, self.targets) and not left_out(recipe, release, self.wanted)
        ]
        ranked = sorted(
            serving,
            key=lambda release: (release.known_good(self.targets), Version(release.version)),
            reverse=True,
        )
        return [VersionCandidate(name, release.version) for release in ranked]

    def is_satisfied_by(self, requirement: Requirement, candidate: VersionCandidate) -> bool:
        return Version(candidate.version) in SpecifierSet(requirement.specifier, prereleases=True)

    def get_dependencies(self, candidate: VersionCandidate) -> list[Requirement]:
        if candidate.provided:
            return []
        recipe = self.catalog.component(candidate.name)
        source = recipe.released(candidate.version).source
        parent = f"{candidate.name} {candidate.version}"
        needs = recipe.takes(candidate.version, self.wanted)
        return [Requirement(name, spec, parent, source) for name, spec in needs.items()]


def refusals(release: Release, targets: Sequence[str]) -> list[str]:
    """Why a release does not serve some of the targets, in words; none where it serves all."""
    reasons = [f"{gpu}: {release.without[gpu]}" for gpu in targets if gpu in release.without]
    if release.targets:
        missing = [gpu for gpu in targets if gpu not in release.targets]
        reasons += [f"{gpu}: it supports only {', '.join(release.targets)}" for gpu in missing]
    return reasons


def left_out(recipe: Component, release: Release, requested: Sequence[str]) -> list[str]:
    """What is asked for that other releases of a recipe take in, and this one does not: it would be built for
    nobody."""
    used = {*recipe.uses, *(name for sibling in recipe.release for name in sibling.uses)}
    return sorted(used & set(requested) - {*recipe.uses, *release.uses})


# How many versions of one component are told of as they are; the rest are counted.
SHOWN = 2


def _chain(causes: Sequence[Any]) -> list[str]:
    """The requirements that cannot all hold, a line each; of one component's versions, some are counted."""
    by_component: defaultdict[tuple[str, str], list[Requirement]] = defaultdict(list)
    for cause in causes:
        parent = cause.parent.name if cause.parent is not None else ""
        by_component[parent, cause.requirement.name].append(cause.requirement)
    chain: list[str] = []
    for (parent, name), requirements in by_component.items():
        lines = list(dict.fromkeys(str(requirement) for requirement in requirements))
        if not parent or len(lines) <= SHOWN + 1:
            chain += lines
            continue
        chain += lines[:SHOWN]
        chain.append(
            f"and {len(lines) - SHOWN} other versions of {parent} need still other versions of {name}"
        )
    return chain


def _conflict(
    error: Any,
    pins: Mapping[str, str],
    at_fault: Sequence[str],
    provided: Mapping[str, Sequence[VersionCandidate]],
    catalog: Catalog,
    targets: Sequence[str],
    requested: Sequence[str],
    constraints: Sequence[Requirement] = (),
) -> ConflictError:
    names = sorted({cause.requirement.name for cause in error.causes})
    chain = [
        *_chain(error.causes),
        *(str(constraint) for constraint in constraints if constraint.name in names),
    ]
    for name in names:
        if name in provided:
            versions = ", ".join(candidate.version for candidate in provided[name])
            chain += [
                f"{candidate.provided} provides {name} {versions}, and no other"
                for candidate in provided[name][:1]
            ]
        elif name in catalog.components:
            recipe = catalog.component(name)
            chain += [
                f"{name} {release.version} takes in no {component}"
                for release in recipe.release
                for component in left_out(recipe, release, requested)
            ]
            chain += [
                f"{name} {release.version} does not serve {reason}   [{release.source}]"
                for release in recipe.release
                for reason in refusals(release, targets)
            ]
        else:
            chain.append(f"nothing here provides {name}, and the catalog has no recipe of that name")
    involved = sorted({*names, *(cause.parent.name for cause in error.causes if cause.parent is not None)})
    far = [name for name in at_fault if name not in involved]
    chain += [f"rocwright.toml pins {name} to {pins[name]}: without that there is an answer" for name in far]
    pinned = [f"{name} = {pins[name]!r}" for name in (*involved, *far) if name in pins]
    return ConflictError(
        f"no version of {', '.join(names)} satisfies all requirements",
        cause="these requirements contradict each other",
        detail="\n".join(f"- {reason}" for reason in dict.fromkeys(chain)),
        next_step=f"loosen [versions] in rocwright.toml ({', '.join(pinned)})"
        if pinned
        else f"{ANOTHER_BASE}, or add a matching release to the catalog",
    )
