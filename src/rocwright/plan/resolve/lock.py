"""Constraints and facts -> a lock: every commit, package, version and hash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from types import MappingProxyType

from rocbase.errors import ConflictError, InputError
from rocwright import __version__
from rocwright.catalog.base import Provided
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Component
from rocwright.catalog.place import GitPlace, Place, WheelsPlace
from rocwright.catalog.remedy import AddPackages, PickVersion, RemedyAction
from rocwright.plan.resolve.aliases import catalog_for
from rocwright.plan.resolve.choose import PYTHON, ROCM, Choice, choose
from rocwright.plan.resolve.constraints import Requirement
from rocwright.plan.resolve.elsewhere import naming_bases
from rocwright.plan.resolve.model import (
    CREATED,
    Lock,
    LockedComponent,
    LockedProvider,
    LockedPython,
    LockedRoot,
    Remedy,
    Request,
)
from rocwright.plan.resolve.standing import LocksOf, request_below
from rocwright.plan.resolve.upstream import Upstream
from rocwright.plan.resolve.validate import wanted_packages
from rocwright.sources.places import describe


def make_lock(
    request: Request,
    catalog: Catalog,
    outside: Upstream,
    on_line: Callable[[str], None],
    *,
    remedies: tuple[Remedy, ...] = (),
    keep: Lock | None = None,
    prefer: Mapping[str, str] = MappingProxyType({}),
    pythons: Sequence[LockedPython] = (),
    published: Sequence[LockedComponent] = (),
    locks_below: LocksOf = lambda request: (),
) -> Lock:
    """Answer a request with one exact version of everything, as its remedies want it; those for components
    that it has no more are dropped.

    What the lock `keep` has stays as it is, where it fits: only what must change is asked for outside.
    Without one, versions in `prefer` go before all others, where they fit, and of Python packages those
    of `pythons` that answer what is wanted are taken, and so are wheels that others `published`. A stack that
    stands on another takes what that one builds from the first lock that `locks_below` tells and that fits,
    else from a new one.
    Raises InputError, ConflictError (with the bases on which the request resolves), FetchError.
    """
    assert outside.architecture is request.architecture
    general, catalog = catalog, catalog_for(request, catalog)
    prefer = versions_in(keep) if keep is not None else prefer
    settled = keep is not None and not any(root.pending for root in keep.roots)
    ask: Version = outside.package_version
    version_of = brought(keep, catalog, ask) if keep is not None and settled else ask

    def chosen(lower: Lock | None = None) -> Choice:
        return choose(request, catalog, version_of, (*held_by(remedies), *held_below(lower)), prefer)

    lower = None
    with naming_bases(request, catalog):
        if (lower_request := request_below(request, catalog)) is not None:
            previous = (
                keep.on
                if keep is not None and keep.on is not None and keep.on.request == lower_request
                else None
            )
            offered = chain((previous,) if previous is not None else (), locks_below(lower_request))
            lower = next((lock for lock in offered if _fits(chosen, lock)), None)
            if lower is None:
                built_on = chosen().built_on
                lower = make_lock(lower_request, general, outside, on_line, prefer=built_on, pythons=pythons)
            on_line(f"lock: what {lower.request.stack} builds is taken from its lock of {lower.created[:10]}")
        choice = chosen(lower)
    names = {component.name for component in choice.components}
    remedies = tuple(remedy for remedy in remedies if remedy.component in names)
    on_line("lock: choosing versions that fit together")
    for note in choice.notes:
        on_line(f"lock: {note}")
    return Lock(
        rocwright=__version__,
        created=datetime.now(UTC).strftime(CREATED),
        request=request,
        provided=dict(choice.provided),
        rocm=_rocm(choice, request, outside, keep),
        python=_python(choice, choice.tools, outside, (keep.python,) if keep else pythons),
        python_run=_python(choice, choice.run_wheels, outside, (keep.python_run,) if keep else pythons),
        components=tuple(
            _component(component, choice, request, outside, on_line, (lower, keep), published)
            for component in choice.components
        ),
        roots=_roots(catalog, choice, outside, on_line, remedies, keep),
        remedies=remedies,
        on=lower,
    )


def _fits(chosen: Callable[[Lock | None], Choice], lower: Lock) -> bool:
    """Whether versions fit together that take in those of a lock below."""
    try:
        chosen(lower)
    except ConflictError:
        return False
    return True


def versions_in(lock: Lock) -> dict[str, str]:
    """The version of everything that a lock has: components, tools, and what the base provides."""
    requirements = lock.python.wanted if lock.python is not None else ()
    tools = {
        requirement.partition("==")[0]: requirement.partition("==")[2]
        for requirement in requirements
        if "==" in requirement
    }
    rocm = {ROCM: lock.rocm.version} if lock.rocm is not None else {}
    return tools | rocm | lock.provided | {component.name: component.version for component in lock.components}


# Tells the version of what a base brings along.
Version = Callable[[Provided], str]


def brought(lock: Lock, catalog: Catalog, otherwise: Version) -> Version:
    """The version of what the base brings along, as a lock has it; `otherwise` where it has none."""
    base, release = catalog.base(lock.request.base)
    names = {package.package: name for name, package in base.provided(release).items() if package.package}

    def version_of(package: Provided) -> str:
        return lock.provided.get(names.get(package.package, "")) or otherwise(package)

    return version_of


def relocks(action: RemedyAction) -> bool:
    """Whether an action makes the lock anew, rather than what is planned from it."""
    return isinstance(action, PickVersion | AddPackages)


def held_by(remedies: Sequence[Remedy]) -> list[Requirement]:
    """What the remedies in force want of versions."""
    return [
        Requirement(
            remedy.action.component,
            remedy.action.versions,
            f"the remedy for {remedy.issue}",
            "; ".join(remedy.source),
        )
        for remedy in remedies
        if remedy.in_force and isinstance(remedy.action, PickVersion)
    ]


def held_below(lock: Lock | None) -> list[Requirement]:
    """The versions that a stack takes from the lock that it stands on."""
    if lock is None:
        return []
    names = {component.name for component in lock.components} | {PYTHON, ROCM}
    return [
        Requirement(name, f"=={version}", f"the lock of {lock.request.stack}, on which it stands")
        for name, version in lock.versions.items()
        if name in names
    ]


def _rocm(choice: Choice, request: Request, outside: Upstream, keep: Lock | None) -> LockedProvider | None:
    if choice.provider is None:
        return None
    previous, version = keep.rocm if keep is not None else None, choice.versions[ROCM]
    if previous is not None and (previous.name, previous.version, previous.pending) == (
        choice.provider.name,
        version,
        "",
    ):
        return previous
    return outside.rocm(choice.provider, version, request.gpu)


def _python(
    choice: Choice,
    requirements: tuple[str, ...],
    outside: Upstream,
    candidates: Iterable[LockedPython | None],
) -> LockedPython | None:
    if not requirements:
        return None
    version = choice.provided.get(PYTHON, choice.release.python)
    for locked in candidates:
        if locked is not None and (locked.version, locked.wanted, locked.pending) == (
            version,
            requirements,
            "",
        ):
            return locked
    return outside.python(version, requirements)


def _component(
    component: Component,
    choice: Choice,
    request: Request,
    outside: Upstream,
    on_line: Callable[[str], None],
    locks: Sequence[Lock | None],
    published: Sequence[LockedComponent],
) -> LockedComponent:
    version = choice.versions[component.name]
    for locked in (candidate for lock in locks if lock is not None for candidate in lock.components):
        if (locked.name, locked.version, locked.pending) == (component.name, version, ""):
            return locked
    on_line(f"lock: the source of {component.name} {version}")
    places: Sequence[Place] = component.released(version).places
    wished = request.versions.get(component.name, "")
    if wished.startswith("@"):
        places = at_commit(component, places, wished.removeprefix("@"))
    python = choice.provided.get(PYTHON, choice.release.python)
    places = [place.of(request.gpu, python) if isinstance(place, WheelsPlace) else place for place in places]
    for locked in published if locks[-1] is None else ():
        if (locked.name, locked.version, locked.pending, locked.place) == (
            component.name,
            version,
            "",
            describe(places[0]),
        ):
            return locked
    fresh = outside.component(component, version, places)
    for reason in fresh.passed_over:
        on_line(f"lock: skipped: {reason}")
    return fresh


def at_commit(component: Component, places: Sequence[Place], commit: str) -> tuple[Place, ...]:
    """The git places of a release, at another commit. Raises InputError where it has none."""
    git_places = tuple(
        place.model_copy(update={"commit": commit, "tag": ""})
        for place in places
        if isinstance(place, GitPlace)
    )
    if not git_places:
        raise InputError(
            f"{component.name} has no git repository, so it cannot be pinned to the commit {commit[:12]}",
            cause="its recipe names only other kinds of sources",
            next_step="pin a version instead: NAME=VERSION",
        )
    return git_places


def _roots(
    catalog: Catalog,
    choice: Choice,
    outside: Upstream,
    on_line: Callable[[str], None],
    remedies: Sequence[Remedy],
    keep: Lock | None,
) -> tuple[LockedRoot, ...]:
    roots = []
    packaged = choice.provider is not None and choice.provider.kind == "packages"
    required = wanted_packages(
        catalog,
        choice.components,
        choice.versions,
        choice.base,
        choice.release,
        choice.provided,
        packaged,
        remedies,
    )
    for role, packages in required.items():
        previous = keep.root(role) if keep is not None else None
        if previous is not None and previous.wanted == packages and not previous.pending:
            roots.append(previous)
            continue
        on_line(f"lock: the packages to {role}")
        roots.append(outside.root(role, choice.base, choice.release, packages))
    return tuple(roots)
