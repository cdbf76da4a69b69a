"""Whether a request, a lock and the recipes fit together; nothing here looks outside."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from rocbase.errors import ConflictError, InputError
from rocwright.catalog.address import filename_of
from rocwright.catalog.base import Base, BaseRelease
from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Component
from rocwright.catalog.remedy import AddPackages
from rocwright.model.architecture import cannot_build, described, host
from rocwright.model.steps import ArchiveOrigin
from rocwright.plan.resolve.aliases import base_of, catalog_for
from rocwright.plan.resolve.model import Lock, LockedProvider, Remedy, Request, Role
from rocwright.plan.resolve.without_code import lacking, to_build

# The kind of components that are wheels of others: none of them is built, and programs run in them.
PUBLISHED_WHEELS = "wheels"

# What a refusal advises; `elsewhere` puts their names behind it.
ANOTHER_BASE = "choose another base"


def check_request(request: Request, catalog: Catalog) -> tuple[Base, BaseRelease]:
    """The base and release of a request whose every name is known. Raises InputError with the nearest."""
    stack = catalog.stack(request.stack)
    for gpu in request.gpu:
        catalog.target(gpu)
    base, release = catalog.base(request.base)
    if request.base not in stack.bases:
        raise InputError(
            f"the stack {stack.name} has no recipe on {request.base}",
            cause=f"it has a recipe on {', '.join(stack.bases)}",
            next_step=ANOTHER_BASE,
        )
    for gpu in request.gpu:
        if stack.targets and gpu not in stack.targets:
            raise ConflictError(
                f"the stack {stack.name} cannot be built for {gpu}",
                cause=f"it supports {', '.join(stack.targets)}",
                next_step="choose another stack: rocwright stacks lists them with their GPUs",
            )
    if request.architecture not in base.architecture:
        alternatives = [
            name for name in stack.bases if request.architecture in catalog.base(name)[0].architecture
        ]
        have = " and ".join(base.architecture)
        raise InputError(
            f"the base {base.name} is not there for {request.architecture}",
            cause=f"the catalog knows it for {have}",
            next_step=f"--arch {next(iter(base.architecture))}"
            + (
                f", or one of the bases that {stack.name} has for it: {', '.join(alternatives)}"
                if alternatives
                else ""
            ),
        )
    if request.snapshot and base.manager != "apt":
        raise InputError(
            f"{request.base} has no snapshots by date",
            cause="only the mirrors of Debian's archive keep one for each day",
            next_step=f"--base {request.base}",
        )
    return base, release.model_copy(update={"snapshot": request.snapshot or release.snapshot})


def check_runs_here(request: Request) -> None:
    """Raise InputError where what is asked for is for machines of another architecture than this one."""
    if reason := cannot_build(request.architecture):
        raise InputError(
            f"this machine {reason}",
            cause=f"{request.stack} runs programs for {request.architecture}; this machine is {described()}",
            next_step=f"build it on a machine that is {request.architecture}"
            + (f", or for this one: --arch {own}" if (own := host()) else ""),
        )


def wanted_packages(
    catalog: Catalog,
    components: Sequence[Component],
    versions: Mapping[str, str],
    base: Base,
    release: BaseRelease,
    provided: Collection[str],
    rocm_packages: bool,
    remedies: Sequence[Remedy] = (),
) -> dict[Role, tuple[str, ...]]:
    """The packages that recipes, in these versions, and remedies ask for, by the role of the root file system
    that has them.

    `provided` are the components that the base brings along; ROCm's libraries are the base's own packages
    where `rocm_packages` says so.
    """
    brought = [package for name, package in base.provided(release).items() if name in provided]
    needs = [component.system_of(versions[component.name]) for component in components]
    rocm = [name for need in needs for name in need.rocm if rocm_packages]
    run = [name for need in needs for name in need.run]
    run += [*(name for package in brought for name in package.run), *rocm]
    names: dict[Role, list[str]] = {}
    if any(component.run for component in components):
        build = [name for need in needs for name in need.build]
        names["build"] = [*build, *(name for package in brought for name in package.build), *rocm]
        names["build"] += [name for remedy in remedies for name in packages_of(remedy)]
    if any(component.image for component in components):
        names["run"] = run
    runs_a_script = any(check.kind == "script" for component in components for check in component.check)
    if runs_a_script or any(component.kind == PUBLISHED_WHEELS for component in components):
        names["check"] = [*run, *(name for need in needs for name in need.check)]
    return {
        role: tuple(sorted({*base.common, *catalog.system_packages(base, packages)}))
        for role, packages in names.items()
    }


def packages_of(remedy: Remedy) -> tuple[str, ...]:
    """The system packages, by the catalog's names, that a remedy adds to builds."""
    if remedy.in_force and isinstance(remedy.action, AddPackages):
        return remedy.action.names
    return ()


def rocm_from_packages(catalog: Catalog, rocm: LockedProvider | None) -> bool:
    """Whether ROCm's libraries come from the base's own packages."""
    return rocm is not None and catalog.provider(rocm.name).kind == "packages"


def check_fits(lock: Lock, catalog: Catalog) -> None:
    """Raise InputError where recipes have changed so that the lock no longer says all that they need."""
    catalog = catalog_for(lock.request, catalog)
    check_request(lock.request, catalog)
    base, release = base_of(lock, catalog)
    components = [catalog.component(pinned.name) for pinned in lock.components]
    changed = [
        f"{component.name} no longer has the release {pinned.version}"
        for component, pinned in zip(components, lock.components, strict=True)
        if all(release.version != pinned.version for release in component.release)
    ]
    if changed:
        raise _no_match(changed)
    changed += _other_downloads(components, lock)
    rocm = rocm_from_packages(catalog, lock.rocm)
    versions = {pinned.name: pinned.version for pinned in lock.components}
    required = wanted_packages(
        catalog, components, versions, base, release, lock.provided, rocm, lock.remedies
    )
    locked_packages: dict[Role, tuple[str, ...]] = {root.role: root.wanted for root in lock.roots}
    for role in sorted({*required, *locked_packages}):
        different = set(required.get(role, ())) ^ set(locked_packages.get(role, ()))
        if different or (role in required) != (role in locked_packages):
            changed.append(f"packages to {role}: {', '.join(sorted(different)) or 'all of them'}")
    tools = lock.python.wanted if lock.python is not None else ()
    locked = {pinned.name for pinned in lock.components} | {
        *lock.provided,
        *(tool.partition("==")[0] for tool in tools),
    }
    stack = catalog.stack(lock.request.stack)
    requested = {*stack.components, *lock.request.extra}
    if lock.rocm is not None:
        provider = catalog.provider(lock.rocm.name)
        lacks = lacking(lock.request, provider, lock.rocm.version, components, versions)
        requested |= {*to_build(lacks, lock.request, stack, catalog)}
    if not requested <= locked:
        changed.append(f"the stack has {', '.join(sorted(requested - locked))} now")
    needed = {name for component in components for release in component.release for name in release.needs}
    if (lock.on.request.stack if lock.on is not None else "") != stack.on:
        changed.append(f"the stack stands on {stack.on or 'no other'} now")
    if idle := {pinned.name for pinned in lock.components} - requested - needed:
        changed.append(f"nothing needs {', '.join(sorted(idle))} now")
    if changed:
        raise _no_match(changed)


def _no_match(changed: Sequence[str]) -> InputError:
    return InputError(
        "the lock does not match the recipes",
        cause="changed since it was locked: " + "; ".join(changed),
        next_step="rocwright lock",
    )


def _other_downloads(components: Sequence[Component], lock: Lock) -> Iterator[str]:
    for component, locked in zip(components, lock.components, strict=True):
        urls = {download.url for download in component.downloads(locked.version)}
        locked_urls = {pin.origin.url for pin in locked.downloads if isinstance(pin.origin, ArchiveOrigin)}
        if not locked.pending and urls != locked_urls:
            names = ", ".join(sorted(filename_of(url) for url in urls ^ locked_urls))
            yield f"downloads of {component.name}: {names}"
