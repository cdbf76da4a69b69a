"""GPUs by whatever a person calls them, or those that are in this machine: of the catalog's targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.wheels.detect import SYSFS

if TYPE_CHECKING:
    from rocwheel.wheels.gpu_table import GpuTable
    from rocwright.catalog.load import Catalog
    from rocwright.catalog.target import Target

AUTO = "auto"


def silent(_: str) -> None:
    """Hears what is done, and says nothing."""


def targets(name: str = "", catalog: Catalog | None = None) -> tuple[Target, ...]:
    """Every GPU target that the catalog knows, or those that `name` can mean: "strix" is two of them.

    Raises InputError where `name` means none.
    """
    from rocwright.plan.resolve.gpus import targets_named

    catalog = catalog or _catalog()
    return tuple(targets_named(name, catalog)) if name else tuple(catalog.targets.values())


def target(
    name: str,
    say: Callable[[str], None] = silent,
    catalog: Catalog | None = None,
    sysfs: Path = SYSFS,
) -> Target:
    """The one target that `name` means: "RX 580", 780M, "Strix Halo", gfx1151, 1002:67df.

    "auto" stands for the strongest GPU of this machine, and `say` hears which that is. Raises InputError for
    a name that means none or several, and where "auto" finds none.
    """
    from rocwheel.wheels.asked import strongest
    from rocwright.plan.resolve.gpus import target_named

    catalog = catalog or _catalog()
    if name != AUTO:
        return target_named(name, catalog)
    gpu = catalog.target(strongest(_names(catalog), sysfs))
    say(f"GPU found: {gpu.name}")
    return gpu


def gpus_here(catalog: Catalog | None = None, sysfs: Path = SYSFS) -> tuple[str, ...]:
    """The targets of this machine's GPUs that the catalog knows, the strongest first; often one, or none."""
    from rocwheel.wheels.asked import here

    return here(_names(catalog), sysfs)


def named_gpus(asked: str | Sequence[str]) -> tuple[str, ...]:
    """The names in what was asked for; one text may have several, with commas between them."""
    from rocwheel.wheels.asked import named

    return named([asked] if isinstance(asked, str) else asked)


def chosen_targets(
    asked: str | Sequence[str],
    say: Callable[[str], None] = silent,
    catalog: Catalog | None = None,
    sysfs: Path = SYSFS,
) -> tuple[str, ...]:
    """The targets to build for: those that the names in `asked` mean, each once.

    "auto" (or no name at all) stands for the strongest GPU of this machine, or for the one that the table of
    names falls back to where there is none; `say` hears which. Raises InputError for a name that means no
    target, or several.
    """
    from rocwheel.wheels.asked import chosen_targets as chosen

    return chosen(named_gpus(asked) or (AUTO,), say, _names(catalog), sysfs)


def code_target(name: str, catalog: Catalog | None = None, sysfs: Path = SYSFS) -> str:
    """The target whose machine code is meant, with features where they are named: gfx90a:xnack-.

    Like `target`, and knows the processors too that the catalog has no facts of. Raises what it raises.
    """
    from rocwheel.wheels.asked import code_target as code

    return code(name, _code_names((name,), catalog), sysfs)


def code_targets(
    asked: str | Sequence[str], catalog: Catalog | None = None, sysfs: Path = SYSFS
) -> tuple[str, ...]:
    """`code_target` for each name, each once; "auto" is every GPU of this machine.

    Raises InputError as it does, and where "auto" finds none.
    """
    from rocwheel.wheels.asked import code_targets as code

    names = named_gpus(asked)
    return code(names, _code_names(names, catalog), sysfs)


def _catalog() -> Catalog:
    from rocwright.catalog.load import the_catalog

    return the_catalog()


def _names(catalog: Catalog | None) -> GpuTable:
    from rocwright.plan.resolve.gpus import table_of

    return table_of(catalog or _catalog())


def _code_names(names: Sequence[str], catalog: Catalog | None) -> GpuTable:
    """Every processor, by the catalog's names; where processors alone are asked for, no catalog is read."""
    from rocwheel.wheels.asked import every_gpu, with_processors
    from rocwheel.wheels.devicecode.gpu import machines

    if {name.partition(":")[0] for name in names} <= {*machines().values()}:
        return every_gpu()
    return with_processors(_names(catalog))
