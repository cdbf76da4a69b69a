"""Whether a processor has what a kernel asks for: registers, memory, waves of its size."""

from __future__ import annotations

from collections.abc import Iterator

from rocwheel.wheels.audit.facts import Isa, Registers
from rocwheel.wheels.devicecode.kernels import Descriptor, Kernel

LARGEST_WORKGROUP = 1024
"""Work-items of a work-group where a kernel names no number (AMDGPUUsage, amdgpu-flat-work-group-size)."""

DYNAMIC_LDS = "hidden_dynamic_lds_size"


def excesses(kernel: Kernel, told: Descriptor, code: Isa, on: Isa, name: str) -> Iterator[str]:
    """What the processor `on`, called `name`, cannot give to a kernel that was compiled for `code`."""
    registers = on.registers(kernel.wave)
    if registers is None:
        yield f"it uses waves of {kernel.wave} work-items, which {name} does not support"
        return
    if kernel.lds > on.lds:
        yield f"a work-group takes {kernel.lds:,} bytes of LDS; {name} has {on.lds:,}"
    if kernel.sgprs > on.sgprs and on.sgprs < code.sgprs:
        yield f"a wave takes {kernel.sgprs} scalar registers; {name} has {on.sgprs}"
    if kernel.scratch * kernel.wave > on.scratch:
        yield f"a wave takes {kernel.scratch * kernel.wave:,} bytes of scratch; {name} has {on.scratch:,}"
    yield from _vector_registers(kernel, told, registers, on, name)


def _vector_registers(
    kernel: Kernel, told: Descriptor, registers: Registers, on: Isa, name: str
) -> Iterator[str]:
    given = told.vgpr_granules * registers.told
    if given < kernel.vgprs:
        yield f"its descriptor asks {name} for {given} vector registers; it uses {kernel.vgprs}"
    if kernel.vgprs > registers.most:
        yield f"a wave takes {kernel.vgprs} vector registers; {name} has {registers.most}"
        return
    given = _rounded_up(max(given, 1), registers.granule)
    # The waves of a work-group share these units, and all must be resident at once.
    units = on.simds if told.workgroup_processor_mode or on.simds == on.cu_simds else on.cu_simds
    waves = -(-_waves(kernel) // units)
    if waves > on.waves:
        yield f"a work-group has {waves} waves in a unit; {name} has {on.waves}"
    elif waves * given > registers.vgprs:
        fits = min(on.waves, registers.vgprs // given) * units * kernel.wave
        yield (
            f"a work-group of {_workgroup(kernel)} work-items takes {waves * given:,} vector registers in a "
            f"unit; {name} has {registers.vgprs:,}, so that only groups of at most {fits} can be launched"
        )


def waves_in_unit(kernel: Kernel, on: Isa) -> int:
    """How many waves of a kernel a unit can hold at once by their vector registers; 0 where none."""
    registers = on.registers(kernel.wave)
    if registers is None:
        return 0
    return min(on.waves, registers.vgprs // _rounded_up(max(kernel.vgprs, 1), registers.granule))


def may_want_more_lds(kernel: Kernel, code: Isa, on: Isa) -> bool:
    """Whether a kernel may ask for memory at launch, that was there and here is not."""
    return on.lds < code.lds and any(one.kind == DYNAMIC_LDS for one in kernel.arguments)


def _workgroup(kernel: Kernel) -> int:
    return kernel.workgroup or LARGEST_WORKGROUP


def _waves(kernel: Kernel) -> int:
    return -(-_workgroup(kernel) // kernel.wave)


def _rounded_up(count: int, granule: int) -> int:
    return -(-count // granule) * granule
