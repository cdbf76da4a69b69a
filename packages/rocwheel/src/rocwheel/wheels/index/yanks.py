"""Releases that are withdrawn (PEP 592): `yanked.toml` beside the wheels says which, and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import tomlkit
from packaging.utils import canonicalize_name, canonicalize_version
from packaging.version import InvalidVersion, Version
from pydantic import field_validator

from rocwheel.errors import InputError
from rocwheel.files.atomic import write_atomic
from rocwheel.model import Frozen
from rocwheel.toml.read import parse, read_toml
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
    told = parse(Yanks, read_toml(path), path)
    return {(one.project, one.version): one.reason for one in told.yank}


def yank(folder: Path, project: str, version: str, reason: str) -> None:
    """Write a release into `yanked.toml`; what else is in it stays as it is. Raises InputError."""
    wanted = _checked(project, version, reason)
    have = read_yanks(folder)
    if have.get((wanted.project, wanted.version)) == reason:
        raise InputError(
            f"{wanted.project} {wanted.version} is already yanked, with this reason",
            cause=f"{folder / YANKS} names it",
            next_step="give another --reason, or take the yank back with --undo",
            subject=str(folder / YANKS),
        )
    document = _document(folder)
    rows = document.setdefault("yank", tomlkit.aot())
    for at in _places(rows, wanted):
        del rows[at]
    rows.append(tomlkit.item({"project": wanted.project, "version": wanted.version, "reason": reason}))
    write_atomic(folder / YANKS, tomlkit.dumps(document))


def unyank(folder: Path, project: str, version: str) -> None:
    """Take a release out of `yanked.toml`. Raises InputError where it is not in it."""
    wanted = _checked(project, version, "")
    if (wanted.project, wanted.version) not in read_yanks(folder):
        raise InputError(
            f"{wanted.project} {wanted.version} is not yanked",
            cause=f"{folder / YANKS} does not name it",
            next_step=f"check the project and version in {folder / YANKS}",
        )
    document = _document(folder)
    rows = document["yank"]
    for at in _places(rows, wanted):
        del rows[at]
    if not rows:
        del document["yank"]
    write_atomic(folder / YANKS, tomlkit.dumps(document))


def _document(folder: Path) -> tomlkit.TOMLDocument:
    path = folder / YANKS
    return tomlkit.parse(path.read_text()) if path.exists() else tomlkit.document()


def _places(rows: object, wanted: Yank) -> list[int]:
    """Where a release stands in the list, the last first."""
    assert isinstance(rows, list)
    found = [
        at
        for at, row in enumerate(rows)
        if (canonicalize_name(row["project"]), canonicalize_version(row["version"]))
        == (wanted.project, wanted.version)
    ]
    return found[::-1]


def _checked(project: str, version: str, reason: str) -> Yank:
    return parse(Yank, {"project": project, "version": version, "reason": reason}, Path(YANKS))
