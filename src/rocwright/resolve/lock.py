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
from rocwright.resolve.aliases import catalog_for
from rocwright.resolve.choose import PYTHON, ROCM, Choice, choose
from rocwright.resolve.constraints import Requirement
from rocwright.resolve.elsewhere import naming_bases
from rocwright.resolve.model import (
    CREATED,
    Lock,
    LockedComponent,
    LockedProvider,
    LockedPython,
    LockedRoot,
    Remedy,
    Request,
)
from rocwright.resolve.standing import LocksOf, request_below
from rocwright.resolve.upstream import Upstream
from rocwright.resolve.validate import wanted_packages
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
    known: Sequence[LockedPython] = (),
    published: Sequence[LockedComponent] = (),
    below: LocksOf = lambda request: (),
) -> Lock:
    """Answer a request with one exact version of everything, as its remedies want it; those for components
    that it has no more are dropped.

    What the lock `keep` has stays as it is, where it fits: only what must change is asked for outside.
    Without one, versions in `prefer` go before all others, where they fit, and of Python packages those that
    are `known` for what is wanted are taken, and so are wheels that others `published`. A stack that stands
    on another takes what that one builds from the first lock that `below` tells and that fits, else from a
    new one.
    Raises InputError, ConflictError (with the bases on which the request resolves), FetchError.
    """
    assert outside.architecture is request.architecture
    general, catalog = catalog, catalog_for(request, catalog)
    prefer = versions_in(keep) if keep is not None else prefer
    settled = keep is not None and not any(root.pending for root in keep.roots)
    ask: Version = outside.package_version
    version_of = brought(keep, catalog, ask) if keep is not None and settled else ask

    def chosen(on: Lock | None = None) -> Choice:
        return choose(request, catalog, version_of, (*held_by(remedies), *held_below(on)), prefer)

    on = None
    with naming_bases(request, catalog):
        if (asked := request_below(request, catalog)) is not None:
            had = keep.on if keep is not None and keep.on is not None and keep.on.request == asked else None
            offered = chain((had,) if had is not None else (), below(asked))
            on = next((one for one in offered if _fits(chosen, one)), None)
            if on is None:
                built_on = chosen().built_on
                on = make_lock(asked, general, outside, on_line, prefer=built_on, known=known)
            on_line(f"lock: what {on.request.stack} builds is taken from its lock of {on.created[:10]}")
        choice = chosen(on)
    here = {one.name for one in choice.components}
    remedies = tuple(one for one in remedies if one.component in here)
    on_line("lock: choosing versions that fit together")
    for note in choice.notes:
        on_line(f"lock: {note}")
    return Lock(
        rocwright=__version__,
        created=datetime.now(UTC).strftime(CREATED),
        request=request,
        provided=dict(choice.provided),
        rocm=_rocm(choice, request, outside, keep),
        python=_python(choice, choice.tools, outside, (keep.python,) if keep else known),
        python_run=_python(choice, choice.run_wheels, outside, (keep.python_run,) if keep else known),
        components=tuple(
            _component(one, choice, request, outside, on_line, (on, keep), published)
            for one in choice.components
        ),
        roots=_roots(catalog, choice, outside, on_line, remedies, keep),
        remedies=remedies,
        on=on,
    )


def _fits(chosen: Callable[[Lock | None], Choice], on: Lock) -> bool:
    """Whether versions fit together that take in those of a lock below."""
    try:
        chosen(on)
    except ConflictError:
        return False
    return True


def versions_in(lock: Lock) -> dict[str, str]:
    """The version of everything that a lock has: components, tools, and what the base provides."""
    asked = lock.python.wanted if lock.python is not None else ()
    tools = {one.partition("==")[0]: one.partition("==")[2] for one in asked if "==" in one}
    rocm = {ROCM: lock.rocm.version} if lock.rocm is not None else {}
    return tools | rocm | lock.provided | {one.name: one.version for one in lock.components}


Version = Callable[[Provided], str]
"""Tells the version of what a base brings along."""


def brought(lock: Lock, catalog: Catalog, otherwise: Version) -> Version:
    """The version of what the base brings along, as a lock has it; `otherwise` where it has none."""
    base, release = catalog.base(lock.request.base)
    names = {one.package: name for name, one in base.provided(release).items() if one.package}

    def version_of(one: Provided) -> str:
        return lock.provided.get(names.get(one.package, "")) or otherwise(one)

    return version_of


def relocks(action: RemedyAction) -> bool:
    """Whether an action makes the lock anew, rather than what is planned from it."""
    return isinstance(action, PickVersion | AddPackages)


def held_by(remedies: Sequence[Remedy]) -> list[Requirement]:
    """What the remedies in force want of versions."""
    return [
        Requirement(
            one.action.component, one.action.versions, f"the remedy for {one.issue}", "; ".join(one.source)
        )
        for one in remedies
        if one.in_force and isinstance(one.action, PickVersion)
    ]


def held_below(lock: Lock | None) -> list[Requirement]:
    """The versions that a stack takes from the lock that it stands on."""
    if lock is None:
        return []
    names = {one.name for one in lock.components} | {PYTHON, ROCM}
    return [
        Requirement(name, f"=={version}", f"the lock of {lock.request.stack}, on which it stands")
        for name, version in lock.versions.items()
        if name in names
    ]


def _rocm(choice: Choice, request: Request, outside: Upstream, keep: Lock | None) -> LockedProvider | None:
    if choice.provider is None:
        return None
    had, version = keep.rocm if keep is not None else None, choice.versions[ROCM]
    if had is not None and (had.name, had.version, had.pending) == (choice.provider.name, version, ""):
        return had
    return outside.rocm(choice.provider, version, request.gpu)


def _python(
    choice: Choice, wanted: tuple[str, ...], outside: Upstream, had: Iterable[LockedPython | None]
) -> LockedPython | None:
    if not wanted:
        return None
    version = choice.provided.get(PYTHON, choice.release.python)
    for one in had:
        if one is not None and (one.version, one.wanted, one.pending) == (version, wanted, ""):
            return one
    return outside.python(version, wanted)


def _component(
    component: Component,
    choice: Choice,
    request: Request,
    outside: Upstream,
    on_line: Callable[[str], None],
    kept: Sequence[Lock | None],
    published: Sequence[LockedComponent],
) -> LockedComponent:
    version = choice.versions[component.name]
    for had in (one for lock in kept if lock is not None for one in lock.components):
        if (had.name, had.version, had.pending) == (component.name, version, ""):
            return had
    on_line(f"lock: the source of {component.name} {version}")
    places: Sequence[Place] = component.released(version).places
    wished = request.versions.get(component.name, "")
    if wished.startswith("@"):
        places = at_commit(component, places, wished.removeprefix("@"))
    python = choice.provided.get(PYTHON, choice.release.python)
    places = [one.of(request.gpu, python) if isinstance(one, WheelsPlace) else one for one in places]
    for had in published if kept[-1] is None else ():
        if (had.name, had.version, had.pending, had.place) == (
            component.name,
            version,
            "",
            describe(places[0]),
        ):
            return had
    found = outside.component(component, version, places)
    for reason in found.passed_over:
        on_line(f"lock: skipped: {reason}")
    return found


def at_commit(component: Component, places: Sequence[Place], commit: str) -> tuple[Place, ...]:
    """The git places of a release, at another commit. Raises InputError where it has none."""
    found = tuple(
        place.model_copy(update={"commit": commit, "tag": ""})
        for place in places
        if isinstance(place, GitPlace)
    )
    if not found:
        raise InputError(
            f"{component.name} has no git repository, so it cannot be pinned to the commit {commit[:12]}",
            cause="its recipe names only other kinds of sources",
            next_step="pin a version instead: NAME=VERSION",
        )
    return found


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
    wanted = wanted_packages(
        catalog,
        choice.components,
        choice.versions,
        choice.base,
        choice.release,
        choice.provided,
        packaged,
        remedies,
    )
    for role, packages in wanted.items():
        had = keep.root(role) if keep is not None else None
        if had is not None and had.wanted == packages and not had.pending:
            roots.append(had)
            continue
        on_line(f"lock: the packages to {role}")
        roots.append(outside.root(role, choice.base, choice.release, packages))
    return tuple(roots)
