"""Releases that are withdrawn (PEP 592): `yanked.toml` beside the wheels says which, and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import tomlkit
from packaging.utils import canonicalize_name, canonicalize_version
from packaging.version import InvalidVersion, Version
from pydantic import field_validator
from tomlkit.items import Item

from rocbase.errors import InputError
from rocbase.files.atomic import write_atomic
from rocbase.model import Frozen
from rocbase.toml.read import parse, read_toml
from rocwheel.wheels.index.model import YANKS


class Yank(Frozen):
    """A release that installers take only where it is asked for exactly."""

    project: str
    version: str
    reason: str = ""

    @field_validator("project")
    @classmethod
    def _named(cls, project: str) -> str:
        return canonicalize_name(project, validate=True)

    @field_validator("version")
    @classmethod
    def _numbered(cls, version: str) -> str:
        try:
            return canonicalize_version(Version(version))
        except InvalidVersion as error:
            raise ValueError(f"{version!r} is not a valid version") from error


class Yanks(Frozen):
    """`yanked.toml`."""

    yank: tuple[Yank, ...] = ()


def read_yanks(folder: Path) -> Mapping[tuple[str, str], str]:
    """Reasons by project and version, zeros at its end left out.

    Raises InputError where the file does not say what it must.
    """
    path = folder / YANKS
    if not path.exists():
        return {}
    document = parse(Yanks, read_toml(path), path)
    return {(yank.project, yank.version): yank.reason for yank in document.yank}


def yank(folder: Path, project: str, version: str, reason: str) -> None:
    """Write a release into `yanked.toml`; what else is in it stays as it is. Raises InputError."""
    release = _release(project, version, reason)
    if read_yanks(folder).get((release.project, release.version)) == reason:
        raise InputError(
            f"{release.project} {release.version} is already yanked, with this reason",
            cause=f"{folder / YANKS} names it",
            next_step="give another --reason, or take the yank back with --undo",
            subject=str(folder / YANKS),
        )
    row = {"project": release.project, "version": release.version, "reason": reason}
    _rewrite(folder, release, [tomlkit.item(row)])


def unyank(folder: Path, project: str, version: str) -> None:
    """Take a release out of `yanked.toml`. Raises InputError if it is not in it."""
    release = _release(project, version, "")
    if (release.project, release.version) not in read_yanks(folder):
        raise InputError(
            f"{release.project} {release.version} is not yanked",
            cause=f"{folder / YANKS} does not name it",
            next_step=f"check the project and version in {folder / YANKS}",
        )
    _rewrite(folder, release, [])


def _rewrite(folder: Path, release: Yank, rows: list[Item]) -> None:
    """Replace the rows of a release."""
    path = folder / YANKS
    document = tomlkit.parse(path.read_text()) if path.exists() else tomlkit.document()
    table = document.setdefault("yank", tomlkit.aot())
    for number, row in reversed([*enumerate(table)]):
        if _release(row["project"], row["version"], release.reason) == release:
            del table[number]
    table.extend(rows)
    if not table:
        del document["yank"]
    write_atomic(path, tomlkit.dumps(document))


def _release(project: str, version: str, reason: str) -> Yank:
    return parse(Yank, {"project": project, "version": version, "reason": reason}, Path(YANKS))
