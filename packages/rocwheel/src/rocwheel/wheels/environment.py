"""An installed Python environment: its packages' folders, and which distribution brought each file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import Distribution, distributions
from pathlib import Path

from rocbase.errors import InputError
from rocwheel.wheels.inspection import Elsewhere, Inspection, inspect

_SITE_PACKAGES = ("lib/python*/site-packages", "lib64/python*/site-packages", "Lib/site-packages")


def inspect_environment(path: Path, *, heads: bool = False) -> Inspection:
    """The GPU code in an environment's packages; each file says which distribution brought it.

    `path` is the environment's folder (that of pyvenv.cfg, or a prefix), or a site-packages folder itself.
    `heads` is as for `inspect`. Raises InputError where it is none, and as `inspect` does.
    """
    libraries, loose, without_code = [], [], []
    for folder in site_packages(path):
        owners = {file: name for name, file in _files(folder)}
        found = inspect(folder, heads=heads)
        prefix = folder.relative_to(path)
        libraries += [
            replace(
                one,
                path=str(prefix / one.path),
                distribution=owners.get(one.path, ""),
                kpacked=_under(prefix, one.kpacked) if one.kpacked else None,
            )
            for one in found.libraries
        ]
        loose += [replace(one, folder=str(prefix / one.folder)) for one in found.loose]
        without_code += [one._replace(path=str(prefix / one.path)) for one in found.without_code]
    return Inspection(
        path=str(path),
        libraries=tuple(libraries),
        loose=tuple(loose),
        without_code=() if libraries or loose else tuple(without_code),
    )


def _under(prefix: Path, one: Elsewhere) -> Elsewhere:
    return replace(one, archives=tuple(str(prefix / path) for path in one.archives))


def site_packages(path: Path) -> list[Path]:
    """The folders with an environment's packages; one that is named by two paths once."""
    if any(path.glob("*.dist-info")):
        return [path]
    found: dict[Path, Path] = {}
    for pattern in _SITE_PACKAGES:
        for folder in sorted(path.glob(pattern)):
            found.setdefault(folder.resolve(), folder)
    if not found:
        raise InputError(
            f"{path} is not a Python environment",
            cause=f"it has none of the folders {', '.join(_SITE_PACKAGES)}",
            next_step="give the folder that contains pyvenv.cfg, or the site-packages folder itself",
            subject=str(path),
        )
    return list(found.values())


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    """Each distribution's name and version, and the files that its RECORD names."""
    for one in distributions(path=[str(folder)]):
        name = _name(one)
        for file in one.files or ():
            yield name, str(file)


def _name(one: Distribution) -> str:
    metadata = one.metadata
    return f"{metadata['Name']} {metadata['Version']}"
