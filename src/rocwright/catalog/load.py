"""The catalog: facts in TOML files, one a component, base, provider and stack; tables for the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache, reduce
from itertools import takewhile
from operator import eq
from pathlib import Path
from typing import TypeVar

from rocbase.errors import ConflictError, InputError
from rocbase.model import Frozen
from rocbase.toml.folders import layers
from rocbase.toml.read import Model, Reader, holder
from rocwheel.tables import DATA as WHEEL_DATA
from rocwheel.wheels.overrides import Overrides
from rocwright.catalog.address import Download
from rocwright.catalog.base import Base, BaseRelease, PackageManager, with_python
from rocwright.catalog.folders import DATA, catalog_folders
from rocwright.catalog.model import Component, Likeness, Stack, SystemPackages
from rocwright.catalog.provider import Provider
from rocwright.catalog.schema import Launcher
from rocwright.catalog.target import Quirk, RunOnly, Target
from rocwright.catalog.target_sets import TARGETS, merged, over, row_with_sets, shared_facts, with_sets
from rocwright.model.edits import Edit

Entry = TypeVar("Entry")

NAMES, OVERRIDES = "gpu_names.toml", "overrides.toml"
# What gpu_names.toml says of a target.
NAME_FIELDS = ("products", "also", "codenames", "pci_ids")


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All facts, by name.

    `folders` hold the files that recipes and checks refer to, the topmost first; `every` are quirks of all
    targets, `run_only` the variables that no build may see. `general` is what a catalog, as a request sees
    it, was made of; else None.
    """

    folders: Sequence[Path]
    targets: Mapping[str, Target]
    every: Sequence[Quirk]
    run_only: Sequence[RunOnly]
    bases: Mapping[str, Base]
    managers: Mapping[str, PackageManager]
    providers: Mapping[str, Provider]
    components: Mapping[str, Component]
    stacks: Mapping[str, Stack]
    system: SystemPackages
    launchers: Sequence[Launcher] = ()
    general: Catalog | None = field(default=None, compare=False, repr=False)

    @property
    def overrides(self) -> Overrides:
        """How its targets pass for one another."""
        overrides = {target.name: target.override for target in self.targets.values() if target.override}
        return Overrides(self.override_variable, overrides)

    @property
    def override_variable(self) -> str:
        """The variable by which a card passes for another; its value is that one's `override.identity`."""
        return next((rule.override for rule in self.run_only if rule.override), "")

    def holder(self, name: str) -> Path:
        """The folder of the catalog that has the file `name`, such as checks/torch/check.py."""
        folder = holder(name, self.folders)
        if folder is None:
            raise InputError(
                f"the catalog has no file {name}",
                cause=f"searched in {', '.join(map(str, self.folders))}",
                next_step="check the path; rocwright catalog check lists all faults of the catalog",
            )
        return folder

    def file(self, name: str) -> Path:
        """The file or folder `name` of the catalog."""
        return self.holder(name) / name

    def source(self, name: str) -> Path:
        """The source tree of that name that the catalog carries."""
        return self.file(f"sources/{name}")

    def target(self, name: str) -> Target:
        return lookup("GPU target", name, self.targets)

    def component(self, name: str) -> Component:
        return lookup("component", name, self.components)

    def provider(self, name: str) -> Provider:
        return lookup("provider of ROCm", name, self.providers)

    def stack(self, name: str) -> Stack:
        return lookup("stack", name, self.stacks)

    def base(self, name: str, python: str = "") -> tuple[Base, BaseRelease]:
        """The base and release that `debian:sid` names, as those see them who take its Python `python`.

        Raises InputError with the nearest name.
        """
        family, _, release_name = name.partition(":")
        base = lookup("base", family, self.bases)
        for release in base.release:
            if release.name == release_name:
                return with_python(base, release, python)
        raise InputError(
            f"unknown base {name!r}",
            cause=f"{base.name} has the releases {', '.join(release.name for release in base.release)}",
            next_step=f"use {' or '.join(base.names)}",
        )

    def manager(self, base: Base) -> PackageManager:
        return lookup("package manager", base.manager, self.managers)

    def system_packages(self, base: Base, names: Iterable[str]) -> tuple[str, ...]:
        """The packages of a base for the catalog's names; what the base itself says stands first."""
        resolved: list[str] = []
        for name in names:
            packages = {} if name in base.packages else lookup("system package", name, self.system.packages)
            translated = base.packages.get(name, packages.get(base.manager))
            if translated is None:
                raise InputError(
                    f"the system package {name!r} has no name on {base.name} ({base.manager})",
                    cause=f"system.toml knows it for {', '.join(packages)}",
                    next_step=f"add its name there, or to [packages] in bases/{base.name}.toml",
                )
            resolved += translated
        return tuple(sorted(set(resolved)))

    def providers_for(self, target: str, version: str, base: str) -> list[Provider]:
        """The providers that are known to serve a target, in a version of ROCm, on a base."""
        return [provider for provider in self.providers.values() if provider.evidence(target, version, base)]

    def served(self, provider: str, target: str, version: str, base: str) -> Provider:
        """That provider. Raises ConflictError where it does not serve the target, naming those that do."""
        chosen = self.provider(provider)
        if chosen.evidence(target, version, base):
            return chosen
        alternatives = [
            f"{candidate.name} ({evidence.source})"
            for candidate in self.providers_for(target, version, base)
            if (evidence := candidate.evidence(target, version, base))
        ]
        raise ConflictError(
            f"{provider} does not serve {target} with ROCm {version} on {base}",
            cause=f"providers that serve it: {'; '.join(alternatives)}"
            if alternatives
            else "no provider in the catalog serves it",
            next_step=f"use one of these; rocwright targets {target} lists them",
        )


@cache
def builtin_catalog() -> Catalog:
    """The catalog that comes with rocwright."""
    return load_catalog(DATA)


def the_catalog() -> Catalog:
    """The catalog in use: the user's own folder, where one is named, over the one that rocwright carries."""
    return _loaded(catalog_folders())


@cache
def _loaded(folders: tuple[Path, ...]) -> Catalog:
    return builtin_catalog() if folders == (DATA,) else load_catalog(*folders)


def load_catalog(*folders: Path) -> Catalog:
    """The catalog in folders, the topmost first: what one says of a name stands over what the next says.

    Raises InputError that names the file and what is wrong in it.
    """
    return read_catalog(Reader(folders))


def read_catalog(reader: Reader) -> Catalog:
    """The catalog that a reader finds; the reader raises, or notes, what is wrong."""
    catalog = Catalog(
        folders=reader.folders,
        targets=_targets(reader),
        every=_list(reader, "targets.toml", "every", Quirk),
        run_only=_list(reader, "targets.toml", "run_only", RunOnly),
        bases=_named_files(reader, "bases", Base),
        managers=_table(reader, "package_managers.toml", "manager", PackageManager),
        providers=_named_files(reader, "providers", Provider, "serves"),
        components=_components(reader),
        stacks=_named_files(reader, "stacks", Stack),
        system=_system(reader),
        launchers=_list(reader, "launchers.toml", "launcher", Launcher),
    )
    _refuse_leaks(reader, catalog)
    return catalog


def _refuse_leaks(reader: Reader, catalog: Catalog) -> None:
    """A variable that only running code may see must not stand in the environment of a build."""
    assignments: list[tuple[type[Frozen], str, str]] = []
    for target in catalog.targets.values():
        assignments += [
            (Target, target.name, quirk.variable) for quirk in target.quirk if quirk.scope == "build"
        ]
    for component in catalog.components.values():
        for env in (component.env, *(release.env for release in component.release)):
            assignments += [(Component, component.name, variable) for variable in env]
    every = [quirk.variable for quirk in catalog.every if quirk.scope == "build"]
    for kind, name, variable in assignments:
        path, place = reader.where[kind, name]
        _refuse_leak(reader, catalog, path, place or name, variable)
    for variable in every:
        _refuse_leak(reader, catalog, reader.layers("targets.toml")[-1], "every", variable)


def _refuse_leak(reader: Reader, catalog: Catalog, path: Path, place: str, variable: str) -> None:
    rule = kept_from_builds(catalog, variable)
    if rule is not None:
        reader.fault(path, place, f"{variable} in the environment of a build: {rule.reason} ({rule.source})")


def kept_from_builds(catalog: Catalog, variable: str) -> RunOnly | None:
    """The rule that keeps a variable out of builds, or None where it may be there."""
    return next((rule for rule in catalog.run_only if fnmatchcase(variable, rule.variables)), None)


def _named_files(reader: Reader, kind: str, model: type[Model], served: str = "") -> dict[str, Model]:
    """Return the models of a folder's files by name; rows called `served` name targets, or sets of them."""
    files = ((path, with_sets(reader, reader.data(path), served)) for path in reader.files(kind))
    models = reader.named(model, ((path, "", data) for path, data in files))
    return {name: models[name] for name in sorted(models)}


def _table(reader: Reader, file: str, name: str, model: type[Model]) -> dict[str, Model]:
    return reader.named(
        model,
        (
            (path, f"{name}.{number}", row)
            for path in reader.layers(file)
            for number, row in enumerate(reader.rows(path, reader.data(path), name))
        ),
    )


def _targets(reader: Reader) -> dict[str, Target]:
    """Targets with their names and overrides, from rocwheel's tables; what a target's own row says holds."""
    folders = (*reader.folders, WHEEL_DATA)
    facts: defaultdict[str, dict[str, object]] = defaultdict(dict)
    for path in layers(NAMES, folders):
        for row in reader.rows(path, reader.data(path), "gpu"):
            facts[str(row.get("target"))] |= {name: row[name] for name in NAME_FIELDS if name in row}
    for path in layers(OVERRIDES, folders):
        for row in reader.rows(path, reader.data(path), "override"):
            fact = {name: value for name, value in row.items() if name not in ("target", "source")}
            facts[str(row.get("target"))]["override"] = fact
    rows = []
    for path in reader.layers(TARGETS):
        shared = shared_facts(reader, path)
        for number, row in enumerate(reader.rows(path, reader.data(path), "target")):
            name = str(row.get("name"))
            rows.append((path, f"target.{number}", facts[name] | merged(shared[name], row)))
    return reader.named(Target, rows)


def _list(reader: Reader, file: str, name: str, model: type[Model]) -> tuple[Model, ...]:
    entries = [
        reader.model(model, row, path, f"{name}.{number}")
        for path in reader.layers(file)
        for number, row in enumerate(reader.rows(path, reader.data(path), name))
    ]
    return tuple(entry for entry in entries if entry is not None)


def _system(reader: Reader) -> SystemPackages:
    packages: dict[str, dict[str, tuple[str, ...]]] = {}
    for path in reader.layers("system.toml"):
        table = reader.model(SystemPackages, {"packages": reader.data(path)}, path)
        packages |= table.packages if table else {}
    return SystemPackages(packages=packages)


def _components(reader: Reader) -> dict[str, Component]:
    """Recipes, each with its edits and downloads that lie apart in edits/NAME.toml and downloads/NAME.toml,
    and with the texts of its diffs."""
    rows = []
    for path in reader.files("components"):
        parts = _parts(reader, path)
        edits = [edit for part in parts for edit in _edits(reader, part)]
        apart = holder(f"edits/{path.name}", reader.folders)
        if apart is not None:
            edits += _edits(reader, apart / "edits" / path.name)
        recipe = reduce(over, (_recipe(reader, part) for part in parts))
        data = with_sets(reader, recipe, "release")
        rows.append((path, "", data | {"edit": edits, "download": _downloads(reader, parts)}))
    components = reader.named(Component, rows)
    return {name: components[name] for name in sorted(components)}


def _parts(reader: Reader, path: Path) -> list[Path]:
    """The files that a recipe is made of, the lowest first: one that is `over` changes the one below it."""
    if not reader.data(path).get("over"):
        return [path]
    layers = reader.layers(f"components/{path.name}")
    below = layers[: layers.index(path)]
    if not below:
        reader.fault(path, "over", "there is no recipe of that name in a folder below")
    return [*(_parts(reader, below[-1]) if below else []), path]


def _recipe(reader: Reader, path: Path) -> dict[str, object]:
    """Return a recipe's data with what it takes from the recipe that it is like."""
    data = {name: value for name, value in reader.data(path).items() if name != "over"}
    like = reader.model(Likeness, data.pop("like"), path, "like") if "like" in data else None
    if like is None:
        return data
    file = f"components/{like.component}.toml"
    folder = holder(file, reader.folders)
    model = reader.data(folder / file) if folder is not None else {}
    for name in like.takes:
        if name not in model:
            reader.fault(path, "like", f"{like.component} has no {name}" if model else f"{file} is not known")
    return merged({name: model[name] for name in like.takes if name in model}, data, add=False)


def _downloads(reader: Reader, parts: Sequence[Path]) -> list[Download]:
    name = parts[-1].name
    folder = holder(f"downloads/{name}", reader.folders)
    files = [*parts, *([folder / "downloads" / name] if folder is not None else [])]
    downloads = [
        reader.model(Download, row, file, f"download.{number}")
        for file in files
        for number, row in enumerate(reader.rows(file, reader.data(file), "download"))
    ]
    return [download for download in downloads if download is not None]


def load_edits(folder: Path, name: str) -> list[Edit]:
    """The edits in edits/NAME.toml: those of a component, where they are many. Raises InputError."""
    return _edits(Reader((folder,)), folder / "edits" / f"{name}.toml")


def _edits(reader: Reader, path: Path) -> list[Edit]:
    rows = [
        (number, edit)
        for number, row in enumerate(reader.rows(path, reader.data(path), "edit"))
        for edit in _by_wave(row)
    ]
    edits = [
        reader.model(
            Edit, _with_text(reader, row_with_sets(reader, row), path, number), path, f"edit.{number}"
        )
        for number, row in rows
    ]
    return [edit for edit in edits if edit is not None]


def _by_wave(row: dict[str, object]) -> list[dict[str, object]]:
    """Return an edit for the targets of each size of waves, where `with` asks for {wave}; else the edit."""
    text = row.get("with")
    if not isinstance(text, str) or "{wave}" not in text:
        return [row]
    return [row | {"with": text.replace("{wave}", wave), "targets": [f"wave{wave}"]} for wave in ("32", "64")]


def _with_text(reader: Reader, row: dict[str, object], path: Path, number: int) -> dict[str, object]:
    """An edit with the text of the diff that it names."""
    name = row.get("diff")
    if not isinstance(name, str):
        return row
    try:
        diff = (holder(name, reader.folders) or path.parent) / name
        return row | {"patch": diff.read_text(encoding="utf-8")}
    except (OSError, ValueError) as error:
        problem = f"names the diff {name}, which cannot be read"
        refused = InputError(f"{path} {problem}", cause=str(error), next_step="correct `diff`")
        reader.fault(path, f"edit.{number}.diff", problem, refused)
        return row


def lookup(kind: str, name: str, entries: Mapping[str, Entry]) -> Entry:
    """Return the entry of that name. Raises InputError with the nearest names."""
    if name in entries:
        return entries[name]
    lower = name.lower()
    for own in (own for own, entry in entries.items() if lower in (own, *getattr(entry, "also", ()))):
        raise InputError(f"unknown {kind} {name!r}", cause=f"its name here is {own}", next_step=f"use {own}")
    close = get_close_matches(lower, entries, n=6, cutoff=0.5)
    # those that begin alike go first
    near = sorted(close, key=lambda candidate: -sum(takewhile(bool, map(eq, lower, candidate))))[:3]
    raise InputError(
        f"unknown {kind} {name!r}",
        cause=f"similar names: {', '.join(near)}" if near else f"known: {', '.join(sorted(entries))}",
        next_step=f"use one of the known names{f', perhaps {near[0]}' if near else ''}",
    )
