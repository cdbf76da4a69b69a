"""Which code is needed for the targets that are wanted, by LLVM's rules for target ids.

Source: clang's documentation of the offload bundler ("Target ID", "Compatibility"): what leaves a
feature open runs on either setting, a fixed one only on its own. A generic target runs on all that it covers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rocbase.errors import InputError
from rocwheel.wheels.gpu_names import target_id
from rocwheel.wheels.gpu_table import gpu_table, only_targets

ANY_GPU = "amdgcnspirv"
"""SPIR-V, which the runtime compiles for the GPU that it meets."""


@dataclass(frozen=True, slots=True)
class Target:
    """A processor and the features that are fixed: gfx90a with ("sramecc+", "xnack-")."""

    name: str
    features: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ":".join((self.name, *self.features))

    @property
    def in_version(self) -> str:
        """As a local version may say it, which knows letters and digits only: gfx90a.xnackoff."""
        words = {"+": "on", "-": "off"}
        return ".".join(
            (self.name.replace("-", "."), *(feature[:-1] + words[feature[-1]] for feature in self.features))
        )


@dataclass(frozen=True, slots=True)
class ProcessorCode:
    """Code for any of these processors, and the features that it fixes."""

    names: Collection[str]
    features: tuple[str, ...] = ()


def targets(texts: Sequence[str], catalogued: Collection[str]) -> tuple[Target, ...]:
    """Targets as a command line names them (`gfx1151,gfx90a:xnack-`, `RX 580`), without repetition.

    Raises InputError for a name that means none of those `catalogued`, or several.
    """
    table = only_targets(gpu_table(), catalogued)
    chosen: dict[Target, None] = {}
    for text in (part for group in texts for part in group.split(",")):
        name, *features = target_id(text, table).split(":")
        chosen[Target(name, tuple(features))] = None
    if not chosen:
        raise InputError(
            "no GPU target was given",
            cause="the list of GPUs is empty",
            next_step=f"give one, such as --gpu {table.fallback}; `{table.lists}` lists them",
        )
    return tuple(chosen)


def needed(
    available: Sequence[ProcessorCode], required: Sequence[Target], covered: Mapping[str, Collection[str]]
) -> tuple[frozenset[int], tuple[Target, ...]]:
    """The numbers of those in `available` that must stay, and the targets that none of them serves.

    `covered` says which processors each generic target covers. Code for the processor itself is preferred to
    generic code, and that to SPIR-V; all that fits stays, since the features of the GPU are not known.
    """
    retained: set[int] = set()
    missing = []
    for want in required:
        fitting = [i for i, code in enumerate(available) if want.name in code.names and _runs(code, want)]
        fitting = fitting or [
            i
            for i, code in enumerate(available)
            if any(want.name in covered.get(name, ()) for name in code.names) and _runs(code, want)
        ]
        fitting = fitting or [i for i, code in enumerate(available) if ANY_GPU in code.names]
        retained.update(fitting)
        if not fitting:
            missing.append(want)
    return frozenset(retained), tuple(missing)


def _runs(code: ProcessorCode, target: Target) -> bool:
    """Whether no feature that both fix is fixed differently."""
    settings = {feature[:-1]: feature[-1] for feature in target.features}
    return all(settings.get(feature[:-1], feature[-1]) == feature[-1] for feature in code.features)
