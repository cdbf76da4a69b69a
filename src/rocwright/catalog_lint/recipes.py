"""Whether a catalog holds together: every file read, every name known, every range and source there."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from rocbase.errors import InputError
from rocbase.model import Frozen
from rocbase.toml.folders import layers
from rocbase.toml.read import Reader, TableFault, holder
from rocwheel.tables import DATA as WHEEL_DATA
from rocwright.catalog.address import ArchivePlace
from rocwright.catalog.base import Base
from rocwright.catalog.issue import read_issues
from rocwright.catalog.load import Catalog, read_catalog
from rocwright.catalog.model import ANY, Component, Stack, StackRow, SystemNeeds
from rocwright.catalog.place import BuiltinPlace, Place, WheelsPlace
from rocwright.catalog.provider import Provider
from rocwright.catalog.target import Quirk, Target
from rocwright.catalog.watchlist import read_watchlist
from rocwright.catalog_lint.issues import check_issues

FOLDERS = ("bases", "components", "downloads", "edits", "issues", "providers", "stacks")
_TABLES = (
    "bench channels clean elf_machines emulators error_lines evidence for_people "
    "generic_targets gpu_names host isas job_kinds job_tools launchers leftovers libraries lint_rules "
    "loose_kernels machine_code models notebook overrides package_managers package_names python_packages "
    "rehearsals system targets watchlist"
)
TABLES = tuple(f"{name}.toml" for name in _TABLES.split())

# What is filled in in the environment of a recipe.
FILLED = frozenset({"version", "targets", "commit"})

# What a recipe needs by these names comes from the base, or from a provider.
PYTHON, ROCM = "python", "rocm"

# (place, what is wrong there)
Findings = Iterator[tuple[str, str]]


def _nothing(_table: Any, _catalog: Catalog) -> Findings:
    return iter(())


@dataclass(frozen=True, slots=True)
class LintedTable:
    """A file of the catalog whose model belongs to a package above this one: what it says, and what in it
    does not fit the rest of the catalog."""

    file: str
    says: type[Frozen]
    wrong: Callable[[Any, Catalog], Findings] = _nothing


def check_catalog(folders: Sequence[Path], tables: Iterable[LintedTable] = ()) -> list[TableFault]:
    """Everything wrong in a catalog whose folders lie one over another, by file and place."""
    faults: list[TableFault] = []
    reader = Reader(folders, faults)
    catalog = read_catalog(reader)
    for target in catalog.targets.values():
        _add(reader, target, _check_target(target, catalog))
    for path in reader.layers("targets.toml")[-1:]:
        for number, quirk in enumerate(catalog.every):
            for place, message in _quirk(quirk, catalog):
                reader.fault(path, f"every.{number}.{place}", message)
    for base in catalog.bases.values():
        _add(reader, base, _base(base, catalog))
    for provider in catalog.providers.values():
        _add(reader, provider, _provider(provider, catalog))
    for component in catalog.components.values():
        _add(reader, component, _component(component, catalog))
    for stack in catalog.stacks.values():
        _add(reader, stack, _stack(stack, catalog))
    for manager in catalog.managers.values():
        _add(reader, manager, iter(()))
    faults += check_issues(reader, catalog)
    _watchlist(reader, catalog)
    for table in tables:
        for path in _layers(reader, table.file):
            read = reader.model(table.says, reader.data(path), path)
            for place, message in (*table.wrong(read, catalog), *_without_source(read)) if read else ():
                reader.fault(path, place, message)
    for path, message in _tables(reader, catalog):
        reader.fault(path, "", message)
    return sorted(set(faults))


def _layers(reader: Reader, name: str) -> list[Path]:
    """Every file of that name, the lowest first; below them all that of rocwheel, if it has one."""
    carried = (WHEEL_DATA,) if (WHEEL_DATA / name).exists() else ()
    return layers(name, (*reader.folders, *carried))


def _add(reader: Reader, entry: Frozen, findings: Findings) -> None:
    name = str(getattr(entry, "name", ""))
    path, place = reader.where[type(entry), name]
    if place == "" and path.stem != name:
        reader.fault(path, "name", f"is {name}; the file must be {name}.toml")
    for field, message in (*findings, *_without_source(entry)):
        reader.fault(path, f"{place} ({name}).{field}" if place else field, message)


def _without_source(model: Frozen, place: str = "") -> Findings:
    """Facts that say no source, in a model and in all that it holds."""
    for name, info in type(model).model_fields.items():
        value, path = getattr(model, name), f"{place}.{name}" if place else name
        if name == "source" and info.is_required() and not _is_filled(value):
            yield path, "a fact needs its source"
        for key, part in _parts(value):
            yield from _without_source(part, f"{path}.{key}" if key else path)


def _is_filled(value: object) -> bool:
    return all(str(part).strip() for part in (value if isinstance(value, tuple) else (value,)))


def _parts(value: object) -> Iterator[tuple[str, Frozen]]:
    match value:
        case Frozen():
            yield "", value
        case tuple():
            yield from ((str(number), part) for number, part in enumerate(value) if isinstance(part, Frozen))
        case dict():
            yield from ((str(key), part) for key, part in value.items() if isinstance(part, Frozen))


def _check_target(target: Target, catalog: Catalog) -> Findings:
    yield from unknown("override.spoof", target.override.spoof if target.override else (), catalog.targets)
    rivals = [candidate for candidate in catalog.targets.values() if candidate.name != target.name]
    owners = {pci: rival.name for rival in rivals for pci in rival.pci_ids}
    for pci in filter(owners.get, target.pci_ids):
        yield "pci_ids", f"{pci} also belongs to {owners[pci]}"
    twins = [rival.name for rival in rivals if rival.kfd_version == target.kfd_version]
    if twins:
        yield "kfd_version", f"{target.kfd_version} also belongs to {twins[0]}"
    for number, quirk in enumerate(target.quirk):
        yield from ((f"quirk.{number}.{place}", message) for place, message in _quirk(quirk, catalog))
    for kind in ("kernel_ok", "kernel_bad"):
        for text in getattr(target.host, kind):
            yield from _version_orrange(f"host.{kind}", text)


def _quirk(quirk: Quirk, catalog: Catalog) -> Findings:
    """A variable that a build wants reaches the builds of its recipes, and none of them says otherwise."""
    yield from _fields("value", quirk.value, {"target"})
    yield from unknown("recipes", quirk.recipes, catalog.components)
    if quirk.scope == "run":
        if quirk.recipes:
            yield "recipes", "recipes take what is for builds; this is for what runs"
        return
    if not quirk.recipes:
        yield "recipes", f"{quirk.variable} reaches no build: name the recipes that take it"
    expected = quirk.value.replace("{target}", "{targets}")
    for name in (name for name in quirk.recipes if name in catalog.components):
        recipe = catalog.components[name]
        for env in (recipe.env, *(release.env for release in recipe.release)):
            setting = env.get(quirk.variable, expected)
            value = setting if isinstance(setting, str) else setting.value
            if value != expected:
                yield "recipes", f"{name} sets {quirk.variable}={value} itself, and this says {expected}"


def _base(base: Base, catalog: Catalog) -> Findings:
    yield from unknown("manager", [base.manager], catalog.managers)
    yield from unknown("packages", base.packages, catalog.system.packages)
    yield from _twice("release", [release.name for release in base.release])
    if not base.release:
        yield "release", "a base needs one release or more"
    for release in base.release:
        if release.digest and not release.confidence:
            yield f"release {release.name}", "a digest needs a confidence: whether it was seen in a registry"


def _provider(provider: Provider, catalog: Catalog) -> Findings:
    bases = {*catalog.bases, *(name for base in catalog.bases.values() for name in base.names)}
    for version in provider.versions:
        yield from _version("versions", version)
    yield from unknown("family", provider.family, catalog.targets)
    address_field = {"archive": "archive", "wheels": "index"}.get(provider.kind, "")
    if bool(provider.shelf) != bool(address_field):
        yield "shelf", "providers of the kinds archive and wheels need places, and other kinds have none"
    for number, shelf in enumerate(provider.shelf):
        yield from _range(f"shelf.{number}.versions", shelf.versions)
        yield from _fields(f"shelf.{number}.archive", shelf.archive, {"version", "family"})
        if address_field and not getattr(shelf, address_field):
            yield f"shelf.{number}.{address_field}", "a place without an address"
    for number, claim in enumerate(provider.serves):
        yield from _range(f"serves.{number}.versions", claim.versions)
        yield from unknown(f"serves.{number}.targets", claim.targets, catalog.targets)
        yield from unknown(f"serves.{number}.bases", claim.bases, bases)
        yield from _twice(f"serves.{number}.targets", claim.targets)


def _component(component: Component, catalog: Catalog) -> Findings:
    yield from _twice("release", [release.version for release in component.release])
    yield from unknown("opens", component.opens, catalog.targets)
    for release in component.release:
        place = f"release {release.version}"
        yield from unknown(f"{place}.needs", release.needs, {*catalog.components, *_brought(catalog)})
        for number, entry in enumerate(release.on):
            for glob in entry.bases:
                if not any(fnmatchcase(name, glob) for base in catalog.bases.values() for name in base.names):
                    yield f"{place}.on.{number}.bases", f"no base is called {glob}"
        needs = [release.needs, *(entry.needs for entry in release.on)]
        for needed, spec in [pair for need in needs for pair in need.items()]:
            yield from _range(f"{place}.needs.{needed}", spec)
        yield from unknown(f"{place}.targets", (*release.targets, *release.without), catalog.targets)
        if isinstance(release.evidence, dict):
            yield from unknown(f"{place}.evidence", release.evidence, (ANY, *catalog.targets))
        for source in release.every_place:
            yield from ((f"{place}.places", message) for message in _place(source, component, catalog))
    for uses in (component.uses, *(release.uses for release in component.release)):
        others = catalog.components.values()
        archives = [other.name for other in others if other.kind == "archive" and other.setup]
        for used, spec in uses.items():
            yield from _range(f"uses.{used}", spec)
            if used not in archives:
                yield f"uses.{used}", "is not an archive with a `setup` that puts it on PATH"
    releases = component.release
    apart = [entry for release in releases for entry in release.on]
    for env in (component.env, *(release.env for release in releases), *(entry.env for entry in apart)):
        for name, value in env.items():
            yield from _fields(f"env.{name}", value if isinstance(value, str) else value.value, FILLED)
    for role in SystemNeeds.model_fields:
        for system in (
            component.system,
            *(release.system for release in releases),
            *(entry.system for entry in apart),
        ):
            yield from unknown(f"system.{role}", getattr(system, role), catalog.system.packages)
    yield from _twice("output", [output.name for output in component.output])
    yield from _twice("check", [check.name for check in component.check])
    yield from _twice("emulated", [check.name for check in component.emulated])
    for check in (*component.check, *component.emulated):
        if check.kind == "script" and holder(check.script, catalog.folders) is None:
            yield f"check {check.name}.script", f"there is no file {check.script}"
    page = component.server.page if component.server is not None else ""
    if page and holder(page, catalog.folders) is None:
        yield "server.page", f"there is no folder {page}"


def _place(place: Place, component: Component, catalog: Catalog) -> Iterator[str]:
    """What is wrong with a place for that kind of component."""
    if component.kind == "file" and not isinstance(place, ArchivePlace):
        yield "a component of the kind file needs an address, `url`"
    wheels = place.wheels if isinstance(place, WheelsPlace) else ()
    most = {"wheels": len(wheels), "wheel": 1}.get(component.kind, 0)
    if len(wheels) > most or (component.kind == "wheels" and not wheels):
        yield "`wheels` are a place of the kind wheels; a component of the kind wheel takes a single one"
    yield from (message for text in wheels for _, message in _fields("", text, {"target"}))
    if isinstance(place, BuiltinPlace) and holder(f"sources/{place.builtin}", catalog.folders) is None:
        yield f"there is no folder sources/{place.builtin}"


def _brought(catalog: Catalog) -> Iterator[str]:
    """What recipes may need that is no component: what bases bring along, their Python, a provider's ROCm."""
    yield from (PYTHON, ROCM)
    for base in catalog.bases.values():
        for release in base.release:
            yield from base.provided(release)


def _stack(stack: Stack, catalog: Catalog) -> Findings:
    components = (*stack.components, *stack.optional)
    yield from unknown("components", components, catalog.components)
    yield from unknown("targets", stack.targets, catalog.targets)
    yield from unknown("prefer", [stack.prefer] if stack.prefer else [], catalog.stacks)
    yield from unknown("origins", sum(stack.origins.values(), ()), catalog.stacks)
    for text in stack.next:
        yield from _fields("next", text, {"out", "dist", "python"})
    for number, row in enumerate(stack.row):
        yield from _row(f"row.{number}", row, stack, catalog)
    for name in stack.bases:
        try:
            base, _ = catalog.base(name)
        except InputError as error:
            yield "bases", error.message
            continue
        for component in filter(None, map(catalog.components.get, components)):
            yield from _packages(component, base, catalog)


def _row(place: str, row: StackRow, stack: Stack, catalog: Catalog) -> Findings:
    yield from unknown(f"{place}.gpu", [row.gpu], catalog.targets)
    yield from unknown(f"{place}.base", [row.base], stack.bases)
    yield from unknown(f"{place}.extra", row.extra, stack.optional)
    provider = catalog.providers.get(row.provider)
    if provider is None:
        yield from unknown(f"{place}.provider", filter(None, [row.provider]), catalog.providers)
        return
    version = row.versions.get(ROCM) or _rocm_of(row.base, catalog)
    if version and provider.serves and not provider.evidence(row.gpu, version, row.base):
        providers = (
            ", ".join(candidate.name for candidate in catalog.providers_for(row.gpu, version, row.base))
            or "none"
        )
        message = (
            f"{row.provider} does not serve {row.gpu} with ROCm {version} on {row.base}; known: {providers}"
        )
        yield f"{place}.provider", message


def _rocm_of(name: str, catalog: Catalog) -> str:
    """The version of ROCm that a base is known to bring along, or nothing."""
    try:
        base, release = catalog.base(name)
    except InputError:
        return ""
    provided = base.provided(release).get(ROCM)
    return provided.version if provided else ""


def _packages(component: Component, base: Base, catalog: Catalog) -> Findings:
    """Packages that a component needs on a base, and that have no name there."""
    for name in (*component.system.build, *component.system.run, *component.system.check):
        if name in catalog.system.packages:
            try:
                catalog.system_packages(base, [name])
            except InputError as error:
                yield "bases", f"{component.name} needs it: {error.message}"


def _watchlist(reader: Reader, catalog: Catalog) -> None:
    issues = read_issues(Reader(reader.folders, []))
    for entry in read_watchlist(reader):
        findings = [
            *unknown("issues", entry.issues, issues),
            *unknown("components", entry.components, catalog.components),
            *unknown("targets", entry.targets, catalog.targets),
        ]
        _add(reader, entry, iter(findings))


def _tables(reader: Reader, catalog: Catalog) -> Iterator[tuple[Path, str]]:
    """What is wrong in tables without names, and files that nothing reads."""
    for path in reader.layers("system.toml"):
        for name, packages in reader.data(path).items():
            for manager in packages if isinstance(packages, dict) else ():
                if manager not in catalog.managers:
                    yield path, f"{name}: there is no package manager {manager}"
    for path in reader.layers("launchers.toml"):
        for row in reader.rows(path, reader.data(path), "launcher"):
            if row.get("package") not in catalog.system.packages:
                yield path, f"launcher: there is no system package {row.get('package')}"
    read = {path for kind in FOLDERS for path in reader.files(kind)}
    for folder in reader.folders:
        for path in (*folder.glob("*.toml"), *folder.glob("*/*.toml")):
            table_name = path.name if path.parent == folder else path.parent.name
            if table_name not in (*TABLES, *FOLDERS) and path not in read:
                near = ", ".join((*TABLES, *(f"{kind}/NAME.toml" for kind in FOLDERS)))
                yield path, f"nothing reads this file; a catalog has {near}"


def unknown(place: str, names: Iterable[str], entries: Iterable[str]) -> Findings:
    allowed = set(entries)
    yield from ((place, f"{name} is not known") for name in names if name not in allowed)


def _twice(place: str, names: Iterable[str]) -> Findings:
    yield from ((place, f"{name} is listed more than once") for name, n in Counter(names).items() if n > 1)


def _range(place: str, text: str) -> Findings:
    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        yield place, f"{text!r} is not a range of versions such as >=6.3,<7"


def _version(place: str, text: str) -> Findings:
    try:
        Version(text)
    except InvalidVersion:
        yield place, f"{text!r} is not a version"


def _version_orrange(place: str, text: str) -> Findings:
    yield from _version(place, text) if text[:1].isdigit() else _range(place, text)


def _fields(place: str, text: str, allowed: Iterable[str]) -> Findings:
    """Names in braces that nothing fills in."""
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError as error:
        yield place, f"{text!r}: {error}"
        return
    yield from (
        (place, f"{{{name}}} in {text!r} is not a known placeholder") for name in names if name not in allowed
    )
