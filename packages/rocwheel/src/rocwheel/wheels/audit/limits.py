"""Whether a processor has what a kernel asks for: registers, memory, waves of its size."""

from __future__ import annotations

from collections.abc import Iterator

from rocwheel.wheels.audit.facts import Isa, Registers
from rocwheel.wheels.devicecode.kernels import Descriptor, Kernel

LARGEST_WORKGROUP = 1024
"""Work-items of a work-group where a kernel names no number (AMDGPUUsage, amdgpu-flat-work-group-size)."""

DYNAMIC_LDS = "hidden_dynamic_lds_size"


def excesses(kernel: Kernel, descriptor: Descriptor, code: Isa, device: Isa, name: str) -> Iterator[str]:
    """What the processor `device`, called `name`, cannot give to a kernel that was compiled for `code`."""
    registers = device.registers(kernel.wave)
    if registers is None:
        yield f"it uses waves of {kernel.wave} work-items, which {name} does not support"
        return
    if kernel.lds > device.lds:
        yield f"a work-group takes {kernel.lds:,} bytes of LDS; {name} has {device.lds:,}"
    if kernel.sgprs > device.sgprs and device.sgprs < code.sgprs:
        yield f"a wave takes {kernel.sgprs} scalar registers; {name} has {device.sgprs}"
    if kernel.scratch * kernel.wave > device.scratch:
        yield f"a wave takes {kernel.scratch * kernel.wave:,} bytes of scratch; {name} has {device.scratch:,}"
    yield from _vector_registers(kernel, descriptor, registers, device, name)


def _vector_registers(
    kernel: Kernel, descriptor: Descriptor, registers: Registers, device: Isa, name: str
) -> Iterator[str]:
    allocated = descriptor.vgpr_granules * registers.told
    if allocated < kernel.vgprs:
        yield f"its descriptor asks {name} for {allocated} vector registers; it uses {kernel.vgprs}"
    if kernel.vgprs > registers.most:
        yield f"a wave takes {kernel.vgprs} vector registers; {name} has {registers.most}"
        return
    allocated = _rounded_up(max(allocated, 1), registers.granule)
    # The waves of a work-group share these units, and all must be resident at once.
    units = (
        device.simds
        if descriptor.workgroup_processor_mode or device.simds == device.cu_simds
        else device.cu_simds
    )
    waves = -(-_waves(kernel) // units)
    if waves > device.waves:
        yield f"a work-group has {waves} waves in a unit; {name} has {device.waves}"
    elif waves * allocated > registers.vgprs:
        fits = min(device.waves, registers.vgprs // allocated) * units * kernel.wave
        yield (
            f"a work-group of {_workgroup(kernel)} work-items takes {waves * allocated:,} vector registers "
            f"in a unit; {name} has {registers.vgprs:,}, "
            f"so that only groups of at most {fits} can be launched"
        )


def waves_in_unit(kernel: Kernel, device: Isa) -> int:
    """How many waves of a kernel a unit can hold at once by their vector registers; 0 where none."""
    registers = device.registers(kernel.wave)
    if registers is None:
        return 0
    return min(device.waves, registers.vgprs // _rounded_up(max(kernel.vgprs, 1), registers.granule))


def may_want_more_lds(kernel: Kernel, code: Isa, device: Isa) -> bool:
    """Whether a kernel may ask for memory at launch, that was there and here is not."""
    return device.lds < code.lds and any(argument.kind == DYNAMIC_LDS for argument in kernel.arguments)


def _workgroup(kernel: Kernel) -> int:
    return kernel.workgroup or LARGEST_WORKGROUP


def _waves(kernel: Kernel) -> int:
    return -(-_workgroup(kernel) // kernel.wave)


def _rounded_up(count: int, granule: int) -> int:
    return -(-count // granule) * granule
