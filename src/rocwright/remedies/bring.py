"""The catalog's names of system packages that have a header which a failed step misses."""

from __future__ import annotations

from collections.abc import Callable

from rocwheel.errors import InputError, RocwrightError
from rocwright.catalog.issue import Issue
from rocwright.catalog.load import Catalog
from rocwright.catalog.remedy import AddPackages
from rocwright.resolve.model import Lock

PackagesWith = Callable[[str], tuple[str, ...]]
"""The packages of a base that have a header, the likeliest first. May raise NetworkError."""


def none_known(header: str) -> tuple[str, ...]:
    """Of no header it is known which package has it."""
    return ()


def bringing(
    issue: Issue, error: RocwrightError, lock: Lock, catalog: Catalog, packages_with: PackagesWith
) -> Issue:
    """A family of missing headers with one action more for each name of the catalog that brings this one."""
    if issue.filled is None or not issue.filled.indexed:
        return issue
    header = _header(issue, error)
    packages = packages_with(header) if header else ()
    names = [name for package in packages for name in _names(package, lock, catalog)]
    actions = [AddPackages(kind="packages", names=(name,)) for name in dict.fromkeys(names)]
    return issue.model_copy(update={"remedies": (*issue.remedies, *actions)})


def _header(issue: Issue, error: RocwrightError) -> str:
    """What the line of a failure names; what is kept of the failure has that line."""
    from rocwright.diagnosis.diagnose import diagnose
    from rocwright.diagnosis.missing import HEADER

    found = diagnose([f"{error.detail}\n{error.cause}\n".encode(errors="replace")])
    return next((one.slots.get(HEADER, "") for one in found.known if one.issue.name == issue.name), "")


def _names(package: str, lock: Lock, catalog: Catalog) -> list[str]:
    """The catalog's names for a package of the lock's base, those for the fewest packages first."""
    base = catalog.base(lock.request.base)[0]
    found: list[tuple[int, str]] = []
    for name in {*catalog.system.packages, *base.packages}:
        try:
            packages = catalog.system_packages(base, (name,))
        except InputError:
            continue
        if package in packages:
            found.append((len(packages), name))
    return [name for _, name in sorted(found)]
