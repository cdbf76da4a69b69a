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
        inspection = inspect(folder, heads=heads)
        prefix = folder.relative_to(path)
        libraries += [
            replace(
                library,
                path=str(prefix / library.path),
                distribution=owners.get(library.path, ""),
                kpacked=_under(prefix, library.kpacked) if library.kpacked else None,
            )
            for library in inspection.libraries
        ]
        loose += [replace(files, folder=str(prefix / files.folder)) for files in inspection.loose]
        without_code += [file._replace(path=str(prefix / file.path)) for file in inspection.without_code]
    return Inspection(
        path=str(path),
        libraries=tuple(libraries),
        loose=tuple(loose),
        without_code=() if libraries or loose else tuple(without_code),
    )


def _under(prefix: Path, elsewhere: Elsewhere) -> Elsewhere:
    return replace(elsewhere, archives=tuple(str(prefix / path) for path in elsewhere.archives))


def site_packages(path: Path) -> list[Path]:
    """The folders with an environment's packages; one that is named by two paths once."""
    if any(path.glob("*.dist-info")):
        return [path]
    folders: dict[Path, Path] = {}
    for pattern in _SITE_PACKAGES:
        for folder in sorted(path.glob(pattern)):
            folders.setdefault(folder.resolve(), folder)
    if not folders:
        raise InputError(
            f"{path} is not a Python environment",
            cause=f"it has none of the folders {', '.join(_SITE_PACKAGES)}",
            next_step="give the folder that contains pyvenv.cfg, or the site-packages folder itself",
            subject=str(path),
        )
    return list(folders.values())


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    """Each distribution's name and version, and the files that its RECORD names."""
    for distribution in distributions(path=[str(folder)]):
        name = _name(distribution)
        for file in distribution.files or ():
            yield name, str(file)


def _name(distribution: Distribution) -> str:
    metadata = distribution.metadata
    return f"{metadata['Name']} {metadata['Version']}"
