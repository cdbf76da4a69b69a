"""The GPUs that a command is asked for: by whatever a person calls them, or those of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from rocwheel.errors import InputError
from rocwheel.wheels.detect import SYSFS, find_gpus
from rocwheel.wheels.devicecode.gpu import machines
from rocwheel.wheels.gpu_names import GpuTable, find_one, gpu_table, target_id, with_targets

AUTO = "auto"
"""The word that stands for the GPUs of this machine."""

FALLBACK = "gfx1151"
"""The target taken where code may be for any and `auto` finds no GPU."""


@cache
def every_gpu() -> GpuTable:
    """Every processor that code can be for, with its names."""
    return with_targets(gpu_table(), machines().values())


def code_target(name: str) -> str:
    """The target whose machine code is meant, with features where they are named: gfx90a:xnack-.

    `auto` is the strongest GPU of this machine. Raises InputError where a name means no GPU, or several.
    """
    return _here()[0] if name == AUTO else target_id(name, every_gpu())


def code_targets(asked: Sequence[str]) -> tuple[str, ...]:
    """The same of several, also with commas between them; `auto` stands for all GPUs of this machine."""
    found = [one for name in _names(asked) for one in (_here() if name == AUTO else [code_target(name)])]
    return tuple(dict.fromkeys(found))


def chosen_targets(asked: Sequence[str], say: Callable[[str], None]) -> tuple[str, ...]:
    """Targets without features; `auto` is the strongest GPU of this machine, or gfx1151 where there is none.

    `say` hears which. Raises InputError for a name that means no GPU, or several.
    """
    found = [
        _strongest(say) if name == AUTO else find_one(name, every_gpu()).target for name in _names(asked)
    ]
    return tuple(dict.fromkeys(found))


def known_here(sysfs: Path = SYSFS) -> tuple[str, ...]:
    """The targets of this machine's GPUs, the strongest first."""
    by_pci = {pci: one.target for one in gpu_table().gpus for pci in one.pci_ids}
    return tuple(dict.fromkeys(one.target for one in find_gpus(by_pci, sysfs) if one.target))


def _strongest(say: Callable[[str], None]) -> str:
    found = next(iter(known_here()), None)
    say(f"GPU found: {found}" if found else f"no AMD GPU found here: building for {FALLBACK}")
    return found or FALLBACK


def _here() -> tuple[str, ...]:
    found = known_here()
    if not found:
        raise InputError(
            "no AMD GPU was found here", next_step="name the GPU that the wheel is for: --gpu gfx1151"
        )
    return found


def _names(asked: Sequence[str]) -> list[str]:
    return [name.strip() for one in asked for name in one.split(",") if name.strip()]
