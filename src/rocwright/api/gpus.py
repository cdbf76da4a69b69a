"""Choosing a GPU: by whatever a person calls it, or the one that is in this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rocwright.catalog.detect import find_gpus
from rocwright.catalog.load import Catalog, the_catalog
from rocwright.catalog.target import Target
from rocwright.errors import InputError
from rocwright.resolve.gpus import table_of, target_named
from rocwright.wheels.gpu import machines
from rocwright.wheels.gpu_names import target_id, with_targets

AUTO = "auto"
FALLBACK = "gfx1151"
"""The target taken where `auto` finds no GPU: code can be built and checked for it all the same."""

SYSFS = Path("/sys")


def gpus_here(catalog: Catalog | None = None, sysfs: Path = SYSFS) -> tuple[str, ...]:
    """The targets of this machine's GPUs that the catalog knows, the strongest first."""
    catalog = catalog or the_catalog()
    found = (one.target for one in find_gpus(catalog, sysfs))
    return tuple(dict.fromkeys(one for one in found if one is not None and one in catalog.targets))


def gpu_here(
    catalog: Catalog | None = None, say: Callable[[str], None] = lambda text: None, sysfs: Path = SYSFS
) -> Target:
    """The strongest GPU of this machine that the catalog knows. Raises InputError where there is none."""
    catalog = catalog or the_catalog()
    here = gpus_here(catalog, sysfs)
    if not here:
        found = find_gpus(catalog, sysfs)
        seen = ", ".join(f"{one.target or 'unknown target'} ({one.pci_id})" for one in found)
        raise InputError(
            "no GPU that the catalog knows was found here",
            cause=f"found: {seen}"
            if seen
            else "neither the kernel's KFD topology nor a DRM device tells of one",
            next_step='name one, such as --gpu gfx1103 or --gpu "RX 580"; rocwright targets lists all',
        )
    say(f"GPU found: {here[0]}")
    return catalog.target(here[0])


def named_gpus(asked: Sequence[str]) -> tuple[str, ...]:
    """The names in what was asked for, which may have several with commas between them."""
    return tuple(name.strip() for one in asked for name in one.split(",") if name.strip())


def chosen_targets(
    asked: Sequence[str],
    say: Callable[[str], None] = lambda text: None,
    catalog: Catalog | None = None,
    sysfs: Path = SYSFS,
) -> tuple[str, ...]:
    """The targets to build for: those that the names in `asked` mean, each once.

    `auto` (or no name at all) stands for the strongest GPU of this machine, or for gfx1151 where there is
    none; `say` hears which. Raises InputError for a name that means no target, or several.
    """
    catalog = catalog or the_catalog()
    chosen = []
    for name in named_gpus(asked) or (AUTO,):
        if name == AUTO:
            found = next(iter(gpus_here(catalog, sysfs)), None)
            say(f"GPU found: {found}" if found else f"no AMD GPU found here: building for {FALLBACK}")
            chosen.append(found or FALLBACK)
        else:
            chosen.append(target_named(name, catalog).name)
    return tuple(dict.fromkeys(chosen))


def one_target(
    name: str,
    say: Callable[[str], None] = lambda text: None,
    catalog: Catalog | None = None,
    sysfs: Path = SYSFS,
) -> Target:
    """The one target that `name` means; `auto` stands for the strongest GPU of this machine.

    Raises InputError for a name that means none or several, and where `auto` finds none.
    """
    catalog = catalog or the_catalog()
    return gpu_here(catalog, say, sysfs) if name == AUTO else target_named(name, catalog)


def code_target(name: str, catalog: Catalog | None = None, sysfs: Path = SYSFS) -> str:
    """The target whose machine code is meant, with features where they are named: gfx90a:xnack-.

    Like `one_target`, and knows the processors too that the catalog has no facts of.
    """
    catalog = catalog or the_catalog()
    if name == AUTO:
        return gpu_here(catalog, sysfs=sysfs).name
    return target_id(name, with_targets(table_of(catalog), machines().values()))


def code_targets(
    asked: Sequence[str], catalog: Catalog | None = None, sysfs: Path = SYSFS
) -> tuple[str, ...]:
    """`code_target` for each name, several with commas between them; `auto` is every GPU of this machine.

    Raises InputError as it does, and where `auto` finds none.
    """
    catalog = catalog or the_catalog()
    found: list[str] = []
    for name in named_gpus(asked):
        more = gpus_here(catalog, sysfs) if name == AUTO else ()
        found += more or [code_target(name, catalog, sysfs)]
    return tuple(dict.fromkeys(found))
