"""Parts of rocwright that come with an extra, or with another package: found as entry points."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

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
            next_step=install_command(extra, package),
        )


def install_command(extra: str, package: str = "rocwright") -> str:
    """Return the command that adds an extra to the environment of this Python, from the same checkout."""
    origin = json.loads(distribution(package).read_text("direct_url.json") or '{"url": ""}')
    checkout = Path(unquote(urlsplit(origin["url"]).path))
    if "dir_info" not in origin or not checkout.is_dir():
        return f"pip install '.[{extra}]' in a checkout of {package}"
    if Path(sys.prefix, "pipx_metadata.json").exists():
        command = "pipx install --force"
    elif Path(sys.prefix, "uv-receipt.toml").exists():
        command = "uv tool install"
    else:
        pip = f"{shlex.quote(sys.executable)} -m pip" if find_spec("pip") else "uv pip"
        command = f"{pip} install{' -e' if origin['dir_info'].get('editable') else ''}"
    return f"{command} {shlex.quote(f'{checkout}[{extra}]')}"


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
