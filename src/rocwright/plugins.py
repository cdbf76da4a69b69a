"""Parts of rocwright that come with an extra, or with another package: found as entry points."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from typing import Any

from packaging.requirements import Requirement

from rocbase.errors import InputError


def load(group: str, name: str) -> Any:
    """Import what an entry point names; None if no installed package has one of that name.

    Raises InputError if several packages have it, if a library of its extra is not installed, or if it
    cannot be imported.
    """
    points = [*entry_points(group=group, name=name)]
    if not points:
        return None
    if len(points) > 1:
        raise InputError(
            f"{len(points)} packages provide {name!r} ({group})",
            cause=", ".join(sorted(map(_package, points))),
            next_step="uninstall all but one of them",
        )
    [point] = points
    for extra in point.extras:
        require_extra(_package(point), extra, name)
    try:
        return point.load()
    except Exception as error:
        raise InputError(
            f"{name!r} of {_package(point)} cannot be loaded ({group})",
            cause=f"{type(error).__name__}: {error}",
            next_step=f"install {_package(point)} in a version that fits the other packages",
        ) from error


def require_extra(package: str, extra: str, purpose: str) -> None:
    """Raise InputError if a library of an extra is not installed; `purpose` is what needs it."""
    if missing := [name for name in _libraries(package, extra) if not _is_installed(name)]:
        raise InputError(
            f"{purpose} needs {', '.join(missing)}, which is not installed",
            cause=f"it comes with the extra `{extra}`",
            next_step=f"pip install -e '.[{extra}]' in a checkout of {package}",
        )


def _libraries(package: str, extra: str) -> Iterator[str]:
    """Yield the libraries that only an extra asks for."""
    for line in distribution(package).requires or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
            yield requirement.name


def _is_installed(package: str) -> bool:
    try:
        return distribution(package) is not None
    except PackageNotFoundError:
        return False


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
