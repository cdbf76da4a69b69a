"""Whether a request, a lock and the recipes fit together; nothing here looks outside."""

from __future__ import annotations

from collections.abc import Sequence

from rocwright.catalog.load import Catalog
from rocwright.catalog.model import Base, BaseRelease, Component
from rocwright.errors import ConflictError, InputError
from rocwright.resolve.model import Lock, Request


def check_request(request: Request, catalog: Catalog) -> tuple[Base, BaseRelease]:
    """The base and release of a request whose every name is known. Raises InputError with the nearest."""
    stack = catalog.stack(request.stack)
    for gpu in request.gpu:
        catalog.target(gpu)
    base, release = catalog.base(request.base)
    if request.base not in stack.bases:
        raise InputError(
            f"the stack {stack.name} has no recipe on {request.base}",
            cause=f"it is known on {', '.join(stack.bases)}",
            next_step=f"rocwright init --stack {stack.name} --base {stack.bases[0]}",
        )
    for gpu in request.gpu:
        if stack.targets and gpu not in stack.targets:
            raise ConflictError(
                f"the stack {stack.name} cannot be built for {gpu}",
                cause=f"it serves {', '.join(stack.targets)}",
                next_step="choose another stack",
            )
    return base, release


def wanted_packages(
    catalog: Catalog, components: Sequence[Component], base: Base
) -> dict[str, tuple[str, ...]]:
    """The packages that recipes ask for, by the role of the root file system that has them."""
    names = {"build": [name for one in components for name in one.system.build]}
    if any(one.image for one in components):
        names["run"] = [name for one in components for name in one.system.run]
    if any(check.kind == "script" for one in components for check in one.check):
        names["check"] = [name for one in components for name in (*one.system.run, *one.system.check)]
    return {
        role: tuple(sorted({*base.common, *catalog.system_packages(base, wanted)}))
        for role, wanted in names.items()
    }


def check_fits(lock: Lock, catalog: Catalog) -> None:
    """Raise InputError where recipes have changed so that the lock no longer says all that they need."""
    base, _ = check_request(lock.request, catalog)
    components = [catalog.component(one.name) for one in lock.components]
    changed = [
        f"{component.name} has no release {one.version} any more"
        for component, one in zip(components, lock.components, strict=True)
        if all(release.version != one.version for release in component.release)
    ]
    wanted = wanted_packages(catalog, components, base)
    had: dict[str, tuple[str, ...]] = {root.role: root.wanted for root in lock.roots}
    for role in sorted({*wanted, *had}):
        different = set(wanted.get(role, ())) ^ set(had.get(role, ()))
        if different or (role in wanted) != (role in had):
            changed.append(f"packages to {role}: {', '.join(sorted(different)) or 'the whole'}")
    if set(catalog.stack(lock.request.stack).components) != {one.name for one in lock.components}:
        changed.append("the stack has other components now")
    if changed:
        raise InputError(
            "the lock does not fit the recipes",
            cause="changed since it was locked: " + "; ".join(changed),
            next_step="rocwright lock",
        )
