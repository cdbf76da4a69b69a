"""GPUs by whatever a person calls them, or those that are in this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rocwheel.errors import InputError
from rocwright.catalog.detect import find_gpus

if TYPE_CHECKING:
    from rocwright.catalog.load import Catalog
    from rocwright.catalog.target import Target

AUTO = "auto"
FALLBACK = "gfx1151"
"""The target taken where `auto` finds no GPU: code can be built and checked for it all the same."""

SYSFS = Path("/sys")


def silent(_: str) -> None:
    """Hears what is done, and says nothing."""


def targets(name: str = "", catalog: Catalog | None = None) -> tuple[Target, ...]:
    """Every GPU target that the catalog knows, or those that `name` can mean: "strix" is two of them.

    Raises InputError where `name` means none.
    """
    from rocwright.resolve.gpus import targets_named

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
    from rocwright.resolve.gpus import target_named

    catalog = catalog or _catalog()
    return _strongest(catalog, say, sysfs) if name == AUTO else target_named(name, catalog)


def gpus_here(catalog: Catalog | None = None, sysfs: Path = SYSFS) -> tuple[str, ...]:
    """The targets of this machine's GPUs that the catalog knows, the strongest first; often one, or none."""
    catalog = catalog or _catalog()
    found = (one.target for one in find_gpus(catalog, sysfs))
    return tuple(dict.fromkeys(one for one in found if one is not None and one in catalog.targets))


def named_gpus(asked: Sequence[str]) -> tuple[str, ...]:
    """The names in what was asked for; one text may have several, with commas between them."""
    return tuple(name.strip() for one in asked for name in one.split(",") if name.strip())


def chosen_targets(
    asked: Sequence[str],
    say: Callable[[str], None] = silent,
    catalog: Catalog | None = None,
    sysfs: Path = SYSFS,
) -> tuple[str, ...]:
    """The targets to build for: those that the names in `asked` mean, each once.

    "auto" (or no name at all) stands for the strongest GPU of this machine, or for gfx1151 where there is
    none; `say` hears which. Raises InputError for a name that means no target, or several.
    """
    catalog = catalog or _catalog()
    chosen = []
    for name in named_gpus(asked) or (AUTO,):
        if name == AUTO:
            found = next(iter(gpus_here(catalog, sysfs)), None)
            say(f"GPU found: {found}" if found else f"no AMD GPU found here: building for {FALLBACK}")
            chosen.append(found or FALLBACK)
        else:
            chosen.append(target(name, catalog=catalog).name)
    return tuple(dict.fromkeys(chosen))


def code_target(name: str, catalog: Catalog | None = None, sysfs: Path = SYSFS) -> str:
    """The target whose machine code is meant, with features where they are named: gfx90a:xnack-.

    Like `target`, and knows the processors too that the catalog has no facts of. Raises what it raises.
    """
    from rocwheel.wheels.choose import targets as target_ids
    from rocwheel.wheels.devicecode.gpu import machines
    from rocwheel.wheels.gpu_names import target_id, with_targets

    known = frozenset(machines().values())
    if name.partition(":")[0] in known:
        (exact,) = target_ids([name], known)
        return str(exact)

    from rocwright.resolve.gpus import table_of

    catalog = catalog or _catalog()
    if name == AUTO:
        return _strongest(catalog, silent, sysfs).name
    return target_id(name, with_targets(table_of(catalog), known))


def code_targets(
    asked: Sequence[str], catalog: Catalog | None = None, sysfs: Path = SYSFS
) -> tuple[str, ...]:
    """`code_target` for each name, each once; "auto" is every GPU of this machine.

    Raises InputError as it does, and where "auto" finds none.
    """
    found: list[str] = []
    for name in named_gpus(asked):
        more = gpus_here(catalog, sysfs) if name == AUTO else ()
        found += more or [code_target(name, catalog, sysfs)]
    return tuple(dict.fromkeys(found))


def _catalog() -> Catalog:
    from rocwright.catalog.load import the_catalog

    return the_catalog()


def _strongest(catalog: Catalog, say: Callable[[str], None], sysfs: Path) -> Target:
    here = gpus_here(catalog, sysfs)
    if not here:
        found = find_gpus(catalog, sysfs)
        seen = ", ".join(f"{one.target or 'unknown target'} ({one.pci_id})" for one in found)
        raise InputError(
            "no GPU that the catalog knows was found here",
            cause=f"found: {seen}"
            if seen
            else "neither the kernel's KFD topology nor a DRM device shows one",
            next_step='name one, such as --gpu gfx1103 or --gpu "RX 580"; rocwright targets lists all',
        )
    say(f"GPU found: {here[0]}")
    return catalog.target(here[0])
