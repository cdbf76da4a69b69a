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
    for one, found in kernels_of(path, unseen):
        by_target[one.target] += found
    return [_of_target(target, found) for target, found in sorted(by_target.items()) if found]


def _of_target(target: str, kernels: list[Kernel]) -> TargetUse:
    isa = isas().get(target)
    return TargetUse(
        target=target,
        kernels=len(kernels),
        spilling=sum(bool(one.vgpr_spills or one.sgpr_spills) for one in kernels),
        scratch=sum(bool(one.scratch) for one in kernels),
        uses=tuple(_uses(kernels, isa)) if isa else (),
        excesses=tuple(_excesses(target, isa, kernels)) if isa else (),
        known=isa is not None,
    )


def _uses(kernels: list[Kernel], isa: Isa) -> Iterator[Use]:
    registers = max((one.most for one in (isa.wave32, isa.wave64) if one), default=0)
    yield _use("vector registers", "a work-item", registers, ((one.vgprs, one.name) for one in kernels))
    scalars = ((one.sgprs, one.name) for one in kernels)
    yield _use("scalar registers", "a wave, VCC counted", SCALARS_AND_VCC, scalars)
    yield _use("LDS", "bytes a work-group", isa.lds, ((one.lds, one.name) for one in kernels))
    scratch = ((one.scratch * one.wave, one.name) for one in kernels)
    yield _use("scratch", "bytes a wave", isa.scratch, scratch)
    waves = [(waves_in_unit(one, isa), one.name) for one in kernels]
    fewest, kernel = min(waves)
    yield Use(
        resource="waves",
        unit="in a unit at once",
        median=median_low(count for count, _ in waves),
        most=fewest,
        limit=isa.waves,
        kernel=kernel,
    )


def _use(resource: str, unit: str, limit: int, taken: Iterable[tuple[int, str]]) -> Use:
    found = list(taken)
    most, kernel = max(found, key=lambda one: one[0])
    return Use(
        resource=resource,
        unit=unit,
        median=median_low(count for count, _ in found),
        most=most,
        limit=limit,
        kernel=kernel,
    )


def _excesses(target: str, isa: Isa, kernels: list[Kernel]) -> Iterator[str]:
    for one in kernels:
        if one.descriptor is not None:
            yield from (f"{one.name}: {text}" for text in excesses(one, one.descriptor, isa, isa, target))
