"""What the kernels of a wheel take of the processors that they were compiled for, against what those have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low

from rocwheel.wheels.audit.facts import Isa, isas
from rocwheel.wheels.audit.limits import excesses, waves_in_unit
from rocwheel.wheels.devicecode.code_objects import Unseen
from rocwheel.wheels.devicecode.kernels import Kernel
from rocwheel.wheels.inspection import kernels_of

SCALARS_AND_VCC = 108
"""Scalar registers of a wave with VCC, flat scratch and XNACK mask, as compilers count them: 104 and 4 on
gfx7, 102 and 6 on gfx8 and gfx9, 106 and 2 since (LLVM's getAddressableNumSGPRs and getNumExtraSGPRs)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One resource: the median and the most that a kernel takes, the kernel that does, what there is.

    Of `waves`, how many a unit can hold at once by their vector registers, `most` is the fewest: there less
    is worse. The compiler counts VCC and the like among the scalar registers, and so does their `limit`.
    """

    resource: str
    unit: str
    median: int
    most: int
    limit: int
    kernel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetUse:
    """The kernels for one target.

    `spilling` counts those that move registers to memory, `scratch` those that use memory of a work-item's
    own. `excesses` says what asks for more than the processor has; `known` is False where nothing is known of
    the processor's limits.
    """

    target: str
    kernels: int
    spilling: int
    scratch: int
    uses: tuple[Use, ...]
    excesses: tuple[str, ...]
    known: bool = True


def resources(path: Path, unseen: Unseen | None = None) -> list[TargetUse]:
    """What the kernels in a wheel, archive, folder or file take, by target.

    `unseen` hears of code that is not counted. Raises InputError where it cannot be read, CheckError where
    something in it is damaged.
    """
    by_target: dict[str, list[Kernel]] = defaultdict(list)
    for code, kernels in kernels_of(path, unseen):
        by_target[code.target] += kernels
    return [_of_target(target, kernels) for target, kernels in sorted(by_target.items()) if kernels]


def _of_target(target: str, kernels: list[Kernel]) -> TargetUse:
    isa = isas().get(target)
    return TargetUse(
        target=target,
        kernels=len(kernels),
        spilling=sum(bool(kernel.vgpr_spills or kernel.sgpr_spills) for kernel in kernels),
        scratch=sum(bool(kernel.scratch) for kernel in kernels),
        uses=tuple(_uses(kernels, isa)) if isa else (),
        excesses=tuple(_excesses(target, isa, kernels)) if isa else (),
        known=isa is not None,
    )


def _uses(kernels: list[Kernel], isa: Isa) -> Iterator[Use]:
    registers = max((wave.most for wave in (isa.wave32, isa.wave64) if wave), default=0)
    yield _use(
        "vector registers", "a work-item", registers, ((kernel.vgprs, kernel.name) for kernel in kernels)
    )
    scalars = ((kernel.sgprs, kernel.name) for kernel in kernels)
    yield _use("scalar registers", "a wave, VCC counted", SCALARS_AND_VCC, scalars)
    yield _use("LDS", "bytes a work-group", isa.lds, ((kernel.lds, kernel.name) for kernel in kernels))
    scratch = ((kernel.scratch * kernel.wave, kernel.name) for kernel in kernels)
    yield _use("scratch", "bytes a wave", isa.scratch, scratch)
    waves = [(waves_in_unit(kernel, isa), kernel.name) for kernel in kernels]
    fewest, kernel = min(waves)
    yield Use(
        resource="waves",
        unit="in a unit at once",
        median=median_low(count for count, _ in waves),
        most=fewest,
        limit=isa.waves,
        kernel=kernel,
    )


def _use(resource: str, unit: str, limit: int, amounts: Iterable[tuple[int, str]]) -> Use:
    pairs = list(amounts)
    largest, kernel = max(pairs, key=lambda pair: pair[0])
    return Use(
        resource=resource,
        unit=unit,
        median=median_low(count for count, _ in pairs),
        most=largest,
        limit=limit,
        kernel=kernel,
    )


def _excesses(target: str, isa: Isa, kernels: list[Kernel]) -> Iterator[str]:
    for kernel in kernels:
        if kernel.descriptor is not None:
            yield from (
                f"{kernel.name}: {text}" for text in excesses(kernel, kernel.descriptor, isa, isa, target)
            )
