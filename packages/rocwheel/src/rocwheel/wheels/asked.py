"""The GPUs that a command is asked for: by whatever a person calls them, or those of this machine.

A `table` says which GPUs there are and what they are called; without one it is every processor that code can
be for. `sysfs` is where the kernel tells which GPUs the machine has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from rocbase.errors import InputError
from rocwheel.wheels.detect import SYSFS, DetectedGpu, find_gpus
from rocwheel.wheels.devicecode.gpu import machines
from rocwheel.wheels.gpu_names import find_one, target_id
from rocwheel.wheels.gpu_table import GpuTable, gpu_table, with_targets

AUTO = "auto"
"""The word that stands for the GPUs of this machine."""


@cache
def every_gpu() -> GpuTable:
    """Every processor that code can be for, with its names."""
    return with_processors(gpu_table())


def with_processors(table: GpuTable) -> GpuTable:
    """The table with every processor that code can be for."""
    return with_targets(table, machines().values())


def named(texts: Sequence[str]) -> tuple[str, ...]:
    """The names in what was asked for; one text may have several, with commas between them."""
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


def here(table: GpuTable | None = None, sysfs: Path = SYSFS) -> tuple[str, ...]:
    """The targets of this machine's GPUs that the table knows, the strongest first; often one, or none."""
    table = table or every_gpu()
    catalogued = {gpu.target for gpu in table.gpus}
    return tuple(dict.fromkeys(gpu.target for gpu in _detected(table, sysfs) if gpu.target in catalogued))


def strongest(table: GpuTable | None = None, sysfs: Path = SYSFS) -> str:
    """The strongest of these. Raises InputError where there is none, with what was found instead."""
    return _all_here(table or every_gpu(), sysfs)[0]


def code_target(name: str, table: GpuTable | None = None, sysfs: Path = SYSFS) -> str:
    """The target whose machine code is meant, with features where they are named: gfx90a:xnack-.

    `auto` is the strongest GPU of this machine. Raises InputError where a name means no GPU, or several.
    """
    table = table or every_gpu()
    return strongest(table, sysfs) if name == AUTO else target_id(name, table)


def code_targets(texts: Sequence[str], table: GpuTable | None = None, sysfs: Path = SYSFS) -> tuple[str, ...]:
    """The same of several, each once; `auto` stands for all GPUs of this machine."""
    table = table or every_gpu()
    targets: list[str] = []
    for name in named(texts):
        targets += _all_here(table, sysfs) if name == AUTO else [target_id(name, table)]
    return tuple(dict.fromkeys(targets))


def chosen_targets(
    texts: Sequence[str], say: Callable[[str], None], table: GpuTable | None = None, sysfs: Path = SYSFS
) -> tuple[str, ...]:
    """Targets without features, each once.

    `auto` is the strongest GPU of this machine, or the table's fallback where there is none; `say` hears
    which. Raises InputError for a name that means no GPU, or several.
    """
    table = table or every_gpu()
    targets = [
        _strongest_or_fallback(table, say, sysfs) if name == AUTO else find_one(name, table).target
        for name in named(texts)
    ]
    return tuple(dict.fromkeys(targets))


def _strongest_or_fallback(table: GpuTable, say: Callable[[str], None], sysfs: Path) -> str:
    target = next(iter(here(table, sysfs)), None)
    say(f"GPU found: {target}" if target else f"no AMD GPU found here: building for {table.fallback}")
    return target or table.fallback


def _all_here(table: GpuTable, sysfs: Path) -> tuple[str, ...]:
    targets = here(table, sysfs)
    if not targets:
        detected = ", ".join(
            f"{gpu.target or 'unknown target'} ({gpu.pci_id})" for gpu in _detected(table, sysfs)
        )
        raise InputError(
            "no AMD GPU that is known was found here",
            cause=f"found: {detected}"
            if detected
            else "neither the kernel's KFD topology nor a DRM device shows one",
            next_step=f"name one, such as --gpu {table.fallback}; {table.lists} lists all",
        )
    return targets


def _detected(table: GpuTable, sysfs: Path) -> list[DetectedGpu]:
    return find_gpus({pci: gpu.target for gpu in table.gpus for pci in gpu.pci_ids}, sysfs)
