"""Constraints and facts -> a lock: every commit, package, version and hash."""

from __future__ import annotations

import platform
from collections.abc import Callable
from datetime import UTC, datetime

from rocwright import __version__
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Base, BaseRelease, Component
from rocwright.errors import InputError
from rocwright.home import Home
from rocwright.resolve.constraints import Candidate, solve
from rocwright.resolve.fits import check_request, wanted_packages
from rocwright.resolve.model import Lock, LockedComponent, LockedRoot, Request
from rocwright.sources.debian import DebianArchive
from rocwright.sources.places import Reach, locate
from rocwright.store.model import Store


def make_lock(
    request: Request, catalog: Catalog, store: Store, home: Home, on_line: Callable[[str], None]
) -> Lock:
    """Answer a request with one exact version of everything. Raises InputError, ConflictError, FetchError."""
    base, release = check_request(request, catalog)
    stack = catalog.stack(request.stack)
    archive = _Archive(home, catalog, base, release, on_line)
    provided = {
        name: (one.version, request.base)
        if one.version
        else (archive().package_version(one.package), f"{request.base} (package {one.package})")
        for name, one in base.provided(release).items()
        if _needed(catalog, stack.components, name)
    }
    on_line("lock: choosing versions that fit together")
    chosen = solve(catalog, stack.components, request.versions, provided)
    reach = Reach(store=store, archive=archive, carried=catalog.folder / "sources")
    components = [
        _component(catalog.component(name), chosen[name], reach, on_line) for name in stack.components
    ]
    roots = _roots(catalog, [catalog.component(name) for name in stack.components], request, archive, on_line)
    return Lock(
        rocwright=__version__,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        request=request,
        provided={name: candidate.version for name, candidate in chosen.items() if candidate.provided},
        roots=roots,
        components=tuple(components),
    )


class _Archive:
    """The suite's archive, refreshed at its first use."""

    def __init__(
        self,
        home: Home,
        catalog: Catalog,
        base: Base,
        release: BaseRelease,
        on_line: Callable[[str], None],
    ) -> None:
        if base.made != "packages":
            others = [name for one in catalog.bases.values() if one.made == "packages" for name in one.names]
            raise InputError(
                f"{base.name}:{release.name} cannot be locked: its root comes from an image",
                cause=f"roots are made from an archive's packages so far, not from {release.image}",
                next_step=f"use {' or '.join(others)}",
            )
        machine = platform.machine()
        if machine not in base.architecture:
            raise InputError(
                f"{base.name} has no recipe for {machine} machines",
                cause=f"known: {', '.join(base.architecture)}",
                next_step="use another machine",
            )
        self.architecture = base.architecture[machine]
        self.archive = DebianArchive(home.apt, release.name, self.architecture)
        self.fresh = False
        self.on_line = on_line

    def __call__(self) -> DebianArchive:
        if not self.fresh:
            self.on_line(f"lock: package lists of {self.archive.suite}")
            self.archive.refresh()
            self.fresh = True
        return self.archive


def _needed(catalog: Catalog, components: tuple[str, ...], name: str) -> bool:
    return any(name in release.needs for one in components for release in catalog.component(one).release)


def _component(
    component: Component, candidate: Candidate, reach: Reach, on_line: Callable[[str], None]
) -> LockedComponent:
    on_line(f"lock: the source of {component.name} {candidate.version}")
    places = component.released(candidate.version).places
    found = locate(component.name, candidate.version, places, reach)
    for reason in found.passed_over:
        on_line(f"lock: passed over: {reason}")
    return LockedComponent(
        name=component.name,
        version=candidate.version,
        place=found.place,
        passed_over=found.passed_over,
        subdir=found.subdir,
        series=found.series,
        files=found.files,
    )


def _roots(
    catalog: Catalog,
    components: list[Component],
    request: Request,
    archive: _Archive,
    on_line: Callable[[str], None],
) -> tuple[LockedRoot, ...]:
    base, release = catalog.base(request.base)
    suite = archive()
    roots = []
    for role, wanted in wanted_packages(catalog, components, base).items():
        on_line(f"lock: the packages to {role}")
        roots.append(
            LockedRoot(
                role=role,
                base=base.name,
                manager=base.manager,
                suite=release.name,
                architecture=archive.architecture,
                wanted=wanted,
                packages=suite.resolve(wanted),
            )
        )
    return tuple(roots)
