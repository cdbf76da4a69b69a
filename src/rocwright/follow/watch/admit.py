"""Would the constraints take a newer version? If not: which rule, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from rocbase.errors import ConflictError, InputError
from rocwright.catalog.base import Provided
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Scheme
from rocwright.follow.watch.candidates import series
from rocwright.plan.resolve.aliases import known_kin, like, version_pins
from rocwright.plan.resolve.choose import ROCM, Choice, choose
from rocwright.plan.resolve.lock import brought, held_by, versions_in
from rocwright.plan.resolve.model import Lock, Request

# Lines of a conflict that are told.
SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Whether a version may be taken, `why` not; the `pin` that takes it, and what it `moves` beside."""

    admitted: bool
    why: str = ""
    pin: str = ""
    moves: tuple[str, ...] = ()


def admit(lock: Lock, catalog: Catalog, name: str, version: str, free: Collection[str] = ()) -> Admission:
    """Ask the solver about a component, a tool, ROCm, or a Python package, in a newer version.

    `free` are those that the lock's request pins although nobody asked for it: an earlier candidate did.
    """
    catalogued = _known_versions(catalog, lock, name)
    if not catalogued:
        return _package(lock, name, version)
    scheme = catalog.components[name].scheme if name in catalog.components else "release"
    pin = known_kin(pin_for(catalogued, version, scheme), lock.request.versions.get(name, ""))
    if not pin:
        have = ", ".join(dict.fromkeys(".".join(map(str, series(release, scheme))) for release in catalogued))
        reason = f"the catalog knows no release of that series, and so not what it needs (it has {have})"
        return Admission(admitted=False, why=reason)
    pinned = version_pins(lock.request.versions).get(name) or lock.request.versions.get(name, "")
    try:
        moves = tuple(_moves(lock, choose_with(lock, catalog, {name: pin}), name))
    except (ConflictError, InputError) as error:
        return Admission(admitted=False, why=rule(error), pin=pin)
    if pinned and name not in free:
        reason = f"rocwright.toml pins it to {pinned}; rocwright bump {name} moves the pin"
        return Admission(admitted=False, why=reason, pin=pin, moves=moves)
    return Admission(admitted=True, pin=pin, moves=moves)


def _known_versions(catalog: Catalog, lock: Lock, name: str) -> list[str]:
    """The versions that the catalog knows of a component, or of the ROCm of the lock's provider."""
    if name == ROCM and lock.rocm is not None and catalog.provider(lock.rocm.name).kind != "source":
        return list(catalog.provider(lock.rocm.name).versions)
    return (
        [release.version for release in catalog.components[name].release]
        if name in catalog.components
        else []
    )


def pin_for(catalogued: Sequence[str], version: str, scheme: Scheme) -> str:
    """What a request says to take a version: itself where it is known, or like the newest of its series."""
    parsed = Version(version)
    exact = next((release for release in catalogued if Version(release) == parsed), "")
    if exact:
        return exact
    kin = [release for release in catalogued if series(release, scheme) == series(version, scheme)]
    return like(version, max(kin, key=Version)) if kin else ""


def choose_with(lock: Lock, catalog: Catalog, pins: dict[str, str]) -> Choice:
    """Solve the lock's request with other pins; what the base brings along is as the lock has it.

    Raises ConflictError, InputError.
    """
    request = with_pins(lock.request, pins)
    return choose(
        request, catalog, brought(lock, catalog, _as_known), held_by(lock.remedies), versions_in(lock)
    )


def with_pins(request: Request, pins: dict[str, str]) -> Request:
    """The request with these versions in the place of its own."""
    return request.model_copy(update={"versions": request.versions | pins})


def _as_known(provided: Provided) -> str:
    """Nothing outside is asked: the version that the catalog has seen."""
    return provided.version


def _moves(lock: Lock, choice: Choice, name: str) -> Iterator[str]:
    has = versions_in(lock)
    for component, version in choice.versions.items():
        if (
            component != name
            and component in has
            and component not in lock.provided
            and _differ(has[component], version)
        ):
            yield f"{component} {has[component]} -> {version}"


def _differ(locked: str, chosen: str) -> bool:
    try:
        return Version(locked) != Version(chosen)
    except InvalidVersion:
        return locked != chosen


def rule(error: ConflictError | InputError) -> str:
    """Why there is no answer, in a line."""
    lines = [line.removeprefix("- ") for line in error.detail.splitlines()]
    text = "; ".join(lines[:SHOWN]) + (f"; and {len(lines) - SHOWN} more" if len(lines) > SHOWN else "")
    return text or f"{error.message}: {error.cause}"


def _package(lock: Lock, name: str, version: str) -> Admission:
    """A Python package that the catalog has no recipe of: what recipes ask for decides, else pip does."""
    for text in (*(lock.python.wanted if lock.python else ()), *(lock.rocm.wanted if lock.rocm else ())):
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        applies = canonicalize_name(requirement.name) == canonicalize_name(name)
        if applies and not requirement.specifier.contains(version, prereleases=True):
            return Admission(admitted=False, why=f"recipes ask for {text}")
    return Admission(admitted=True)


def admit_brought(lock: Lock, catalog: Catalog, name: str, version: str) -> Admission:
    """Whether the lock's choice goes with another version of what the base brings along."""
    moved = lock.model_copy(update={"provided": lock.provided | {name: version}})
    try:
        versions = versions_in(lock)
        choice = choose(
            lock.request, catalog, brought(moved, catalog, _as_known), held_by(lock.remedies), versions
        )
    except (ConflictError, InputError) as error:
        return Admission(admitted=False, why=rule(error))
    return Admission(admitted=True, moves=tuple(_moves(lock, choice, name)))
