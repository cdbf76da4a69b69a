"""Constraints and facts -> a lock: every commit, package, version and hash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from rocwright import __version__
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Component
from rocwright.catalog.place import GitPlace, Place
from rocwright.errors import InputError
from rocwright.resolve.choose import PYTHON, ROCM, Choice, choose
from rocwright.resolve.fits import wanted_packages
from rocwright.resolve.like import catalog_for
from rocwright.resolve.model import Lock, LockedComponent, LockedPython, LockedRoot, Request
from rocwright.resolve.outside import Outside


def make_lock(request: Request, catalog: Catalog, outside: Outside, on_line: Callable[[str], None]) -> Lock:
    """Answer a request with one exact version of everything. Raises InputError, ConflictError, FetchError."""
    catalog = catalog_for(request, catalog)
    choice = choose(request, catalog, outside.package_version)
    on_line("lock: versions that fit together are chosen")
    rocm = None
    if choice.provider is not None:
        rocm = outside.rocm(choice.provider, choice.versions[ROCM], request.gpu)
    return Lock(
        rocwright=__version__,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        request=request,
        provided=dict(choice.provided),
        rocm=rocm,
        python=_python(choice, outside),
        components=tuple(_component(one, choice, request, outside, on_line) for one in choice.components),
        roots=_roots(catalog, choice, outside, on_line),
    )


def _python(choice: Choice, outside: Outside) -> LockedPython | None:
    if not choice.tools:
        return None
    return outside.python(choice.provided.get(PYTHON, choice.release.python), choice.tools)


def _component(
    component: Component, choice: Choice, request: Request, outside: Outside, on_line: Callable[[str], None]
) -> LockedComponent:
    version = choice.versions[component.name]
    on_line(f"lock: the source of {component.name} {version}")
    places = component.released(version).places
    wished = request.versions.get(component.name, "")
    if wished.startswith("@"):
        places = at_commit(component, places, wished.removeprefix("@"))
    found = outside.component(component, version, places)
    for reason in found.passed_over:
        on_line(f"lock: passed over: {reason}")
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
            f"{component.name} has no git repository to take the commit {commit[:12]} from",
            cause="its recipe names other places only",
            next_step="name a version in its place",
        )
    return found


def _roots(
    catalog: Catalog, choice: Choice, outside: Outside, on_line: Callable[[str], None]
) -> tuple[LockedRoot, ...]:
    roots = []
    packaged = choice.provider is not None and choice.provider.kind == "packages"
    wanted = wanted_packages(
        catalog, choice.components, choice.base, choice.release, choice.provided, packaged
    )
    for role, packages in wanted.items():
        on_line(f"lock: the packages to {role}")
        roots.append(outside.root(role, choice.base, choice.release, packages))
    return tuple(roots)
