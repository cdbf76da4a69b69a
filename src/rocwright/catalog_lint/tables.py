"""Every kind of file in a catalog, also those whose models belong to the packages that read them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from rocbase.model import Frozen
from rocbase.toml.read import TableFault
from rocwheel.wheels.audit.facts import MachineCodeTable as MachineCode
from rocwheel.wheels.audit.facts import Processors
from rocwheel.wheels.devicecode.loose import LooseFile
from rocwheel.wheels.emulators import EmulatorsFile
from rocwheel.wheels.lint.leftovers import LeftoversFile
from rocwheel.wheels.lint.rules import LintRulesFile
from rocwheel.wheels.overrides import OverridesFile
from rocwheel.wheels.repair.facts import LibrariesFile
from rocwright.catalog.issue import the_issues
from rocwright.catalog.load import Catalog
from rocwright.catalog.model_files import ModelsFile
from rocwright.catalog.notebook import Notebook
from rocwright.catalog.schema import FILES as CATALOG_FILES
from rocwright.catalog.schema import schema as schema_of
from rocwright.catalog.target import PciId
from rocwright.catalog_lint.for_people import ForPeopleFile, in_vain, keys
from rocwright.catalog_lint.recipes import Findings, LintedTable, check_catalog, unknown
from rocwright.diagnosis.facts import Concern, HostFile
from rocwright.doctor.requirements.facts import PythonPackagesFile
from rocwright.execution.cleanup.model import Kinds
from rocwright.execution.jobs.forms import JobTools
from rocwright.execution.jobs.processes import Programs
from rocwright.plan.resolve.evidence import EvidenceFile
from rocwright.plan.resolve.settings import ChannelsFile
from rocwright.provenance.facts import PackageNamesFile
from rocwright.rehearsal.book import Book
from rocwright.verify.bench.model import BENCH, BenchFile

NonEmpty = Annotated[str, Field(min_length=1)]
Sources = Annotated[tuple[NonEmpty, ...], Field(min_length=1)]

# What doctor fills in in commands that help.
FILLED = frozenset(
    {"user", "groups", "gids", "number", "command", "pages", "module", "path", "pci", "gpu", "variable"}
)


class MachinesFile(Frozen):
    """elf_machines.toml: the processor that a number in an ELF header names."""

    source: Sources
    machines: dict[NonEmpty, Annotated[int, Field(gt=0, lt=256)]]


class GenericTargetsFile(Frozen):
    """generic_targets.toml: the processors that run the code of a generic target."""

    source: Sources
    covers: dict[NonEmpty, Annotated[tuple[NonEmpty, ...], Field(min_length=1)]]


class GpuNamesRow(Frozen):
    """What one processor is called."""

    target: NonEmpty
    products: tuple[NonEmpty, ...] = ()
    also: tuple[NonEmpty, ...] = ()
    codenames: tuple[NonEmpty, ...] = ()
    pci_ids: tuple[PciId, ...] = ()
    source: Sources


class MakerRow(Frozen):
    """Another maker of GPUs: PCI vendors, words of its names, and names without such a word."""

    name: NonEmpty
    pci: tuple[Annotated[str, Field(pattern=r"^[0-9a-f]{4}$")], ...] = ()
    words: tuple[Annotated[str, Field(pattern=r"^[a-z]+$")], ...] = ()
    names: tuple[NonEmpty, ...] = ()
    source: Sources


class UnsupportedRow(Frozen):
    """A generation of AMD's GPUs that ROCm does not run on, and what the kernel must be told to drive it."""

    name: NonEmpty
    targets: tuple[Annotated[str, Field(pattern=r"^gfx[0-9a-f]{3,4}$")], ...]
    names: tuple[NonEmpty, ...] = ()
    pci_ids: tuple[PciId, ...] = ()
    kernel: tuple[NonEmpty, ...] = ()
    source: Sources


class FallbackGpu(Frozen):
    """The processor that code is made for where any will do and the machine has no GPU."""

    target: NonEmpty
    source: Sources


class GpuNamesFile(Frozen):
    """gpu_names.toml: what people call GPUs."""

    fallback: FallbackGpu | None = None

    gpu: tuple[GpuNamesRow, ...] = ()
    maker: tuple[MakerRow, ...] = ()
    unsupported: tuple[UnsupportedRow, ...] = ()


def _host(host: HostFile, catalog: Catalog) -> Findings:
    families = {name for target in catalog.targets.values() for name in target.families}
    features = {name for target in catalog.targets.values() for name in target.features}
    if host.shares_memory:
        yield from unknown("shares_memory.families", host.shares_memory.families, families)
    for number, firmware in enumerate(host.firmware):
        yield from unknown(f"firmware.{number}.targets", firmware.targets, catalog.targets)
        yield from unknown(f"firmware.{number}.issues", firmware.issues, the_issues()[0])
    if host.driver:
        yield from unknown("driver.issues", host.driver.issues, the_issues()[0])
    for number, wants in enumerate(host.wants):
        yield from unknown(f"wants.{number}.stack", [wants.stack], catalog.stacks)
    for number, link in enumerate(host.link):
        yield from unknown(f"link.{number}.feature", [link.feature], features)
    for place, concern in _concerns(host):
        filled = re.findall(r"{(\w*)}", concern.remedy)
        yield from (
            (f"{place}.remedy", f"{{{name}}} is not a known placeholder")
            for name in filled
            if name not in FILLED
        )
        for glob in concern.stacks:
            without = concern.model_copy(update={"stacks": (glob.removeprefix("!"),)})
            if not any(without.concerns(name) for name in catalog.stacks):
                yield f"{place}.stacks", f"{glob} does not match any stack"


def _concerns(host: HostFile) -> Iterator[tuple[str, Concern]]:
    for name in HostFile.model_fields:
        rows = getattr(host, name)
        for number, row in enumerate(rows if isinstance(rows, tuple) else ()):
            if isinstance(row, Concern):
                yield f"{name}.{number}", row


def _emulators(table: EmulatorsFile, catalog: Catalog) -> Findings:
    for number, emulator in enumerate(table.emulator):
        yield from unknown(f"emulator.{number}.configurations", emulator.configurations, catalog.targets)
        yield from unknown(f"emulator.{number}.lacks", emulator.lacks, catalog.targets)


def _evidence(table: EvidenceFile, catalog: Catalog) -> Findings:
    for number, row in enumerate(table.evidence):
        yield from unknown(f"evidence.{number}.stack", [row.stack], catalog.stacks)
        stack = catalog.stacks.get(row.stack)
        yield from unknown(f"evidence.{number}.bases", row.bases, stack.bases if stack else row.bases)
        gpus = [gpu for entry in row.entries for gpu in entry.gpu]
        yield from unknown(f"evidence.{number}.bases", dict.fromkeys(gpus), catalog.targets)


def _job_tools(table: JobTools, catalog: Catalog) -> Findings:
    tools = {tool.name for tool in table.tool}
    for place, form in enumerate(table.form):
        yield from unknown(f"form.{place}.knows", form.knows, tools)
        yield from unknown(f"form.{place}.harms", form.harms, tools)
    for place, number in enumerate(table.number):
        yield from unknown(f"number.{place}.of", number.of, tools)
        yield from unknown(f"number.{place}.always", number.always, catalog.components)


def _gpu_names(table: GpuNamesFile, catalog: Catalog) -> Findings:
    for number, gpu in enumerate(table.gpu):
        yield from unknown(f"gpu.{number}.target", [gpu.target], catalog.targets)
    for number, old in enumerate(table.unsupported):
        both = sorted({*old.targets} & {*catalog.targets})
        if both:
            yield f"unsupported.{number}.targets", f"also a target of targets.toml: {', '.join(both)}"
    if table.fallback is not None:
        yield from unknown("fallback.target", [table.fallback.target], catalog.targets)


def _overrides(table: OverridesFile, catalog: Catalog) -> Findings:
    for number, override in enumerate(table.override):
        yield from unknown(f"override.{number}.target", [override.target], catalog.targets)
        yield from unknown(f"override.{number}.spoof", override.spoof, catalog.targets)


def _package_names(table: PackageNamesFile, catalog: Catalog) -> Findings:
    for number, manager in enumerate(table.manager):
        yield from unknown(f"manager.{number}.name", [manager.name], catalog.managers)


def _for_people(table: ForPeopleFile, catalog: Catalog) -> Findings:
    files = {glob: tuple(keys(says)) for glob, says in FILES.values()}
    yield from in_vain(table, files | {"system.toml": tuple(catalog.system.packages)})


def _rehearsals(table: Book, catalog: Catalog) -> Findings:
    stand_ins = {stand_in.name for stand_in in table.stand_in}
    bases = {name for base in catalog.bases.values() for name in base.names}
    for number, stand_in in enumerate(table.stand_in):
        yield from unknown(f"stand_in.{number}.base", [stand_in.base], bases)
        yield from unknown(f"stand_in.{number}.system", stand_in.system, catalog.system.packages)
    for number, rehearsal in enumerate(table.rehearsal):
        place = f"rehearsal.{number}"
        yield from unknown(f"{place}.components", rehearsal.components, catalog.components)
        recipes = [catalog.components[name] for name in rehearsal.components if name in catalog.components]
        for trial in (*rehearsal.trial, *(trial for within in rehearsal.within for trial in within.trial)):
            yield from unknown(f"{place}.trial.on", trial.on, stand_ins)
            if not trial.run and not all(recipe.resume for recipe in recipes):
                yield f"{place}.trial", f"{trial.name} has no `run`, and the recipe no `resume`"


def _python_packages(table: PythonPackagesFile, catalog: Catalog) -> Findings:
    for number, row in enumerate(table.package):
        place = f"package.{number}"
        yield from unknown(f"{place}.component", filter(None, [row.component]), catalog.components)
        yield from unknown(f"{place}.stack", filter(None, [row.stack]), catalog.stacks)


def _bench(table: BenchFile, catalog: Catalog) -> Findings:
    for number, measurement in enumerate(table.measurement):
        yield from unknown(f"measurement.{number}.components", measurement.components, catalog.components)
        if not any((folder / measurement.script).is_file() for folder in catalog.folders):
            yield f"measurement.{number}.script", f"{measurement.script} is not in the catalog"


# Kind -> a table of one file.
TABLES: dict[str, LintedTable] = {
    "bench": LintedTable(BENCH, BenchFile, _bench),
    "channel": LintedTable("channels.toml", ChannelsFile),
    "clean": LintedTable("clean.toml", Kinds),
    "elf_machine": LintedTable("elf_machines.toml", MachinesFile),
    "emulator": LintedTable("emulators.toml", EmulatorsFile, _emulators),
    "evidence": LintedTable("evidence.toml", EvidenceFile, _evidence),
    "for_people": LintedTable("for_people.toml", ForPeopleFile, _for_people),
    "generic_target": LintedTable("generic_targets.toml", GenericTargetsFile),
    "gpu_name": LintedTable("gpu_names.toml", GpuNamesFile, _gpu_names),
    "host": LintedTable("host.toml", HostFile, _host),
    "isa": LintedTable("isas.toml", Processors),
    "job_kind": LintedTable("job_kinds.toml", Programs),
    "job_tool": LintedTable("job_tools.toml", JobTools, _job_tools),
    "leftover": LintedTable("leftovers.toml", LeftoversFile),
    "library": LintedTable("libraries.toml", LibrariesFile),
    "lint_rule": LintedTable("lint_rules.toml", LintRulesFile),
    "loose_kernel": LintedTable("loose_kernels.toml", LooseFile),
    "machine_code": LintedTable("machine_code.toml", MachineCode),
    "model": LintedTable("models.toml", ModelsFile),
    "notebook": LintedTable("notebook.toml", Notebook),
    "override": LintedTable("overrides.toml", OverridesFile, _overrides),
    "package_name": LintedTable("package_names.toml", PackageNamesFile, _package_names),
    "python_package": LintedTable("python_packages.toml", PythonPackagesFile, _python_packages),
    "rehearsal": LintedTable("rehearsals.toml", Book, _rehearsals),
}

_OF_TABLES = {kind: (table.file, table.says) for kind, table in TABLES.items()}
# Kind -> the files of it, as a glob in the catalog's folder, and what they say.
FILES: dict[str, tuple[str, type[Frozen]]] = dict(sorted((CATALOG_FILES | _OF_TABLES).items()))


def check(folders: Sequence[Path]) -> list[TableFault]:
    """Everything wrong in a catalog whose folders lie one over another, by file and place."""
    return check_catalog(folders, TABLES.values())


def schema(kind: str) -> dict[str, Any]:
    """The JSON schema of one kind's files."""
    return schema_of(FILES[kind][1])


def schemas() -> dict[str, Any]:
    """All of them by kind, each with the files that it is for."""
    return {kind: {"files": files, "schema": schema(kind)} for kind, (files, _) in FILES.items()}
