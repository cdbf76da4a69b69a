"""Reading the catalog: facts in TOML files, one a component, base and stack."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from rocwright.catalog.model import (
    Base,
    BaseRelease,
    Component,
    PackageManager,
    Stack,
    SystemPackages,
    Target,
)
from rocwright.catalog.provider import Provider
from rocwright.errors import InputError
from rocwright.models import Frozen
from rocwright.patching.model import Edit

DATA = Path(__file__).parent / "data"

MOST_TOML_BYTES = 4 * 1024 * 1024
MOST_TOML_DOTS = 16

Model = TypeVar("Model", bound=Frozen)
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All facts, by name. `folder` holds the files that recipes and checks refer to."""

    folder: Path
    targets: Mapping[str, Target]
    bases: Mapping[str, Base]
    managers: Mapping[str, PackageManager]
    providers: Mapping[str, Provider]
    components: Mapping[str, Component]
    stacks: Mapping[str, Stack]
    system: SystemPackages

    def target(self, name: str) -> Target:
        return lookup("GPU target", name, self.targets)

    def component(self, name: str) -> Component:
        return lookup("component", name, self.components)

    def provider(self, name: str) -> Provider:
        return lookup("provider of ROCm", name, self.providers)

    def stack(self, name: str) -> Stack:
        return lookup("stack", name, self.stacks)

    def base(self, name: str) -> tuple[Base, BaseRelease]:
        """The base and release that `debian:sid` names."""
        family, _, wanted = name.partition(":")
        base = lookup("base", family, self.bases)
        for release in base.release:
            if release.name == wanted:
                return base, release
        raise InputError(
            f"unknown base {name!r}",
            cause=f"{base.name} has the releases {', '.join(one.name for one in base.release)}",
            next_step=f"use {' or '.join(base.names)}",
        )

    def manager(self, base: Base) -> PackageManager:
        return lookup("package manager", base.manager, self.managers)

    def system_packages(self, base: Base, names: Iterable[str]) -> tuple[str, ...]:
        """The packages of a base for the catalog's names; what the base itself says stands first."""
        found: list[str] = []
        for name in names:
            packages = {} if name in base.packages else lookup("system package", name, self.system.packages)
            here = base.packages.get(name, packages.get(base.manager))
            if here is None:
                raise InputError(
                    f"the system package {name!r} has no name on {base.name} ({base.manager})",
                    cause=f"system.toml knows it for {', '.join(packages)}",
                    next_step=f"add its name there, or to [packages] in bases/{base.name}.toml",
                )
            found += here
        return tuple(sorted(set(found)))


@cache
def builtin_catalog() -> Catalog:
    """The catalog that comes with rocwright."""
    return load_catalog(DATA)


def load_catalog(folder: Path) -> Catalog:
    """The catalog in a folder. Raises InputError that names the file and what is wrong in it."""
    return Catalog(
        folder=folder,
        targets=_table(read_toml(folder / "targets.toml"), "target", Target, folder / "targets.toml"),
        bases=_folder(folder / "bases", Base),
        managers=_table(
            read_toml(folder / "package_managers.toml"),
            "manager",
            PackageManager,
            folder / "package_managers.toml",
        ),
        providers=_folder(folder / "providers", Provider),
        components=_components(folder),
        stacks=_folder(folder / "stacks", Stack),
        system=parse(SystemPackages, {"packages": read_toml(folder / "system.toml")}, folder / "system.toml"),
    )


def _folder(folder: Path, model: type[Model]) -> dict[str, Model]:
    found = [parse(model, read_toml(path), path) for path in sorted(folder.glob("*.toml"))]
    return {getattr(one, "name"): one for one in found}  # noqa: B009 - every model here has a name


def _components(folder: Path) -> dict[str, Component]:
    """Recipes, each with its edits that lie apart in edits/NAME.toml, and with the texts of its diffs."""
    found = {}
    for path in sorted((folder / "components").glob("*.toml")):
        data, apart = read_toml(path), folder / "edits" / path.name
        edits = _edits(data, folder, path) + (load_edits(folder, path.stem) if apart.exists() else [])
        component = parse(Component, data | {"edit": edits}, path)
        found[component.name] = component
    return found


def load_edits(folder: Path, name: str) -> list[Edit]:
    """The edits in edits/NAME.toml: those of a component, where they are many. Raises InputError."""
    path = folder / "edits" / f"{name}.toml"
    return _edits(read_toml(path), folder, path)


def _edits(data: Mapping[str, object], folder: Path, path: Path) -> list[Edit]:
    return [parse(Edit, _with_text(row, folder, path), path) for row in _rows(data, path)]


def _rows(data: Mapping[str, object], path: Path) -> list[dict[str, object]]:
    rows = data.get("edit", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path}: `edit` is not a list of tables", next_step="write each as [[edit]]")
    return rows


def _with_text(row: dict[str, object], folder: Path, path: Path) -> dict[str, object]:
    """An edit with the text of the diff that it names."""
    name = row.get("diff")
    if not isinstance(name, str):
        return row
    try:
        return row | {"patch": (folder / name).read_text(encoding="utf-8")}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} names the diff {name}, which cannot be read",
            cause=str(error),
            next_step="correct `diff`",
        ) from error


def _table(data: Mapping[str, object], name: str, model: type[Model], path: Path) -> dict[str, Model]:
    rows = data.get(name)
    found = [parse(model, row, path) for row in rows] if isinstance(rows, list) else []
    return {getattr(one, "name"): one for one in found}  # noqa: B009


def read_toml(path: Path) -> dict[str, object]:
    """A TOML file as data. Raises InputError where it is not there, too large, or not TOML."""
    try:
        if path.stat().st_size > MOST_TOML_BYTES:
            raise InputError(f"{path} is too large to be read", next_step="a file of this kind has some KiB")
        text = path.read_text(encoding="utf-8")
        # tomllib takes time by the square of the parts of a name
        if any(line.partition("=")[0].count(".") > MOST_TOML_DOTS for line in text.splitlines()):
            raise InputError(f"{path} has a name of too many parts", next_step="look at the file")
        return tomllib.loads(text)
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist", next_step="check the name") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text", cause=str(error), next_step="look at the file"
        ) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read", cause=str(error), next_step="check its rights") from error
    except (ValueError, RecursionError) as error:
        # ValueError: not TOML, or a number with more digits than Python reads
        cause = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise InputError(f"{path} is not valid TOML", cause=cause, next_step="correct that place") from error


def parse(model: type[Model], data: object, path: Path) -> Model:
    """`data` as a model. Raises InputError that names every place that is wrong."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        places = [
            f"{'.'.join(str(part) for part in fault['loc']) or 'the whole'}: {fault['msg']}"
            for fault in error.errors()[:8]
        ]
        raise InputError(
            f"{path} does not say what a {model.__name__.lower()} must say",
            cause="; ".join(places),
            next_step="correct these places",
        ) from error


def _shared(one: str, other: str) -> int:
    """How many characters two names begin with alike."""
    return next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def lookup(kind: str, name: str, known: Mapping[str, Entry]) -> Entry:
    """The entry of that name. Raises InputError with the nearest names."""
    if name in known:
        return known[name]
    near = sorted(get_close_matches(name, known, n=6, cutoff=0.5), key=lambda one: -_shared(name, one))[:3]
    raise InputError(
        f"unknown {kind} {name!r}",
        cause=f"near it: {', '.join(near)}" if near else f"known: {', '.join(sorted(known))}",
        next_step=f"use one of the known names{f', perhaps {near[0]}' if near else ''}",
    )
