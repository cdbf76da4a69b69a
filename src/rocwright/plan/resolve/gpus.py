"""The catalog's targets by whatever a person calls a GPU."""

from __future__ import annotations

from dataclasses import replace

from rocwheel.wheels.gpu_names import find, find_one
from rocwheel.wheels.gpu_table import GpuNames, GpuTable, gpu_table
from rocwright.catalog.load import Catalog
from rocwright.catalog.target import Target
from rocwright.plan.resolve.settings import ProjectFile


def table_of(catalog: Catalog) -> GpuTable:
    """The names of the catalog's targets, for the matcher."""
    gpus = (
        GpuNames(
            target=target.name,
            products=target.products,
            also=target.also,
            codenames=target.codenames,
            pci_ids=target.pci_ids,
            families=target.families,
        )
        for target in catalog.targets.values()
    )
    return replace(
        gpu_table(),
        gpus=tuple(gpus),
        lists="rocwright targets",
        without="use it through Vulkan: rocwright run llama-vulkan",
    )


def with_gpus(project: ProjectFile, catalog: Catalog) -> ProjectFile:
    """The project file with targets in the place of what it calls GPUs. Raises InputError."""
    table = table_of(catalog)

    def targets(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(find_one(name, table).target for name in names))

    matrix = tuple(row.model_copy(update={"gpu": targets(row.gpu)}) for row in project.matrix)
    return project.model_copy(update={"gpu": targets(project.gpu), "matrix": matrix})


def targets_named(text: str, catalog: Catalog) -> list[Target]:
    """The targets that `text` can mean, one or several. Raises InputError where it means none."""
    return [catalog.target(gpu.target) for gpu in find(text, table_of(catalog))]


def target_named(text: str, catalog: Catalog) -> Target:
    """The one target that `text` means. Raises InputError where it means none, or several: it lists them."""
    return catalog.target(find_one(text, table_of(catalog)).target)
