"""The kernels of a GPU code object: names, registers, memory and wave size.

They are told twice: in the metadata note, which the runtime reads, and in each kernel's descriptor, which the
hardware's dispatch reads. Source of both layouts: LLVM AMDGPUUsage, "Code Object V3 Metadata" to "V6" and
"Kernel Descriptor".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import msgpack
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rocwheel.wheels.devicecode.code_object import CodeFile, Symbol

METADATA_OWNER, METADATA_KIND = b"AMDGPU", 32
LONGEST_METADATA = 256 * 1024**2
MOST_ITEMS = 128 * 1024
"""Bounds of a metadata note: its bytes, and the items of one list in it."""

DESCRIPTOR_SIZE = 64
DESCRIPTOR_SUFFIX = ".kd"
_DESCRIPTOR = struct.Struct("<III4xq20xIIIHH4x")

_WAVE32, _DYNAMIC_STACK = 1 << 10, 1 << 11
_SCRATCH_ENABLED, _TRAP_HANDLER = 1, 1 << 6
_WORKGROUP_PROCESSOR_MODE = 1 << 29


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of a kernel: offset and size in bytes, and its kind as LLVM names it (by_value, ...)."""

    offset: int
    size: int
    kind: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """The 64 bytes that a dispatch reads.

    `entry` is the address of the first instruction, sizes are bytes for a work-group (`lds`), a work-item
    (`scratch`) and a dispatch (`kernargs`); `rsrc1` to `rsrc3` are the registers COMPUTE_PGM_RSRC, and
    `properties` and `preload` the words that follow.
    """

    entry: int
    lds: int
    scratch: int
    kernargs: int
    rsrc1: int
    rsrc2: int
    rsrc3: int
    properties: int
    preload: int

    @property
    def wave32(self) -> bool:
        return bool(self.properties & _WAVE32)

    @property
    def dynamic_stack(self) -> bool:
        return bool(self.properties & _DYNAMIC_STACK)

    @property
    def vgpr_granules(self) -> int:
        """Granules of vector registers asked for; how many registers one holds depends on the target."""
        return (self.rsrc1 & 0x3F) + 1

    @property
    def scratch_enabled(self) -> bool:
        return bool(self.rsrc2 & _SCRATCH_ENABLED)

    @property
    def trap_handler(self) -> bool:
        return bool(self.rsrc2 & _TRAP_HANDLER)

    @property
    def workgroup_processor_mode(self) -> bool:
        return bool(self.rsrc1 & _WORKGROUP_PROCESSOR_MODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """What one kernel needs to run.

    Registers are counted for a work-item (`vgprs`, which includes `agprs`) and a wave (`sgprs`); `lds` is
    bytes for a work-group without what is asked for at launch, `scratch` bytes for a work-item, `kernargs`
    bytes of arguments, `wave` work-items in a wave, `workgroup` the most work-items in a work-group.
    `descriptor` is None in a file that is not linked yet, and where there is none.
    """

    name: str
    symbol: str
    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    lds: int
    scratch: int
    dynamic_stack: bool
    kernargs: int
    wave: int
    workgroup: int
    arguments: tuple[Argument, ...]
    descriptor: Descriptor | None

    @property
    def contradictions(self) -> tuple[str, ...]:
        """Where the metadata and the descriptor do not agree, in words; the hardware goes by the latter."""
        if self.descriptor is None:
            return ()
        descriptor = self.descriptor
        pairs = (
            ("LDS", self.lds, descriptor.lds),
            ("scratch", self.scratch, descriptor.scratch),
            ("argument bytes", self.kernargs, descriptor.kernargs or self.kernargs),  # 0 says nothing
        )
        return tuple(
            f"{label}: {ours:,} in the metadata, {theirs:,} in the descriptor"
            for label, ours, theirs in pairs
            if ours != theirs
        )


def kernels(code: bytes, subject: str = "code object") -> list[Kernel]:
    """The kernels of one code object (version 3 to 6), in the order of its metadata.

    Raises CheckError for what is no sound code object, in bounded time and memory.
    """
    return kernels_of(CodeFile(code, subject))


def kernels_of(file: CodeFile) -> list[Kernel]:
    """The same for a code object that is read already."""
    symbols = {symbol.name: symbol for symbol in file.symbols}
    return [_kernel(file, record, symbols) for record in _records(file)]


class _Lenient(BaseModel):
    """A newer compiler may say more."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


_Count = Annotated[int, Field(ge=0, lt=1 << 63)]


class _ArgumentTold(_Lenient):
    offset: Annotated[_Count, Field(alias=".offset")]
    size: Annotated[_Count, Field(alias=".size")]
    value_kind: Annotated[str, Field(alias=".value_kind")]
    name: Annotated[str, Field(alias=".name")] = ""


class _KernelRecord(_Lenient):
    """A kernel as the metadata has it; what has a default here is not said by every compiler."""

    name: Annotated[str, Field(alias=".name")]
    symbol: Annotated[str, Field(alias=".symbol")]
    vgprs: Annotated[_Count, Field(alias=".vgpr_count")]
    agprs: Annotated[_Count, Field(alias=".agpr_count")] = 0
    sgprs: Annotated[_Count, Field(alias=".sgpr_count")]
    vgpr_spills: Annotated[_Count, Field(alias=".vgpr_spill_count")] = 0
    sgpr_spills: Annotated[_Count, Field(alias=".sgpr_spill_count")] = 0
    lds: Annotated[_Count, Field(alias=".group_segment_fixed_size")]
    scratch: Annotated[_Count, Field(alias=".private_segment_fixed_size")]
    dynamic_stack: Annotated[bool, Field(alias=".uses_dynamic_stack")] = False
    kernargs: Annotated[_Count, Field(alias=".kernarg_segment_size")]
    wave: Annotated[_Count, Field(alias=".wavefront_size")]
    workgroup: Annotated[_Count, Field(alias=".max_flat_workgroup_size")] = 0
    arguments: Annotated[list[_ArgumentTold], Field(alias=".args")] = []


class _Metadata(_Lenient):
    kernels: Annotated[list[_KernelRecord], Field(alias="amdhsa.kernels")] = []


def _records(file: CodeFile) -> Iterator[_KernelRecord]:
    for owner, kind, content in file.notes():
        if (owner, kind) == (METADATA_OWNER, METADATA_KIND):
            try:
                metadata = _Metadata.model_validate(_unpacked(content))
            except ValidationError as error:
                first = error.errors()[0]
                place = ".".join(str(part) for part in first["loc"])[:100]
                raise file.wrong(f"its metadata: {place or 'the whole'}: {first['msg']}") from error
            except (ValueError, TypeError, msgpack.UnpackException, RecursionError) as error:
                raise file.wrong(f"its metadata is not MessagePack: {str(error)[:100]}") from error
            yield from metadata.kernels


def _unpacked(content: memoryview) -> Any:
    if len(content) > LONGEST_METADATA:
        raise ValueError(f"{len(content):,} bytes of it")
    return msgpack.unpackb(
        content, max_array_len=MOST_ITEMS, max_map_len=MOST_ITEMS, max_ext_len=0, strict_map_key=True
    )


def _kernel(file: CodeFile, record: _KernelRecord, symbols: dict[str, Symbol]) -> Kernel:
    symbol = symbols.get(record.symbol) if file.linked else None
    return Kernel(
        **{name: getattr(record, name) for name in _KernelRecord.model_fields if name != "arguments"},
        arguments=tuple(
            Argument(offset=argument.offset, size=argument.size, kind=argument.value_kind, name=argument.name)
            for argument in record.arguments
        ),
        descriptor=_descriptor(file, symbol) if symbol is not None else None,
    )


def _descriptor(file: CodeFile, symbol: Symbol) -> Descriptor:
    lds, scratch, kernargs, entry, rsrc3, rsrc1, rsrc2, properties, preload = _DESCRIPTOR.unpack(
        file.bytes_of(symbol, DESCRIPTOR_SIZE)
    )
    return Descriptor(
        entry=symbol.address + entry,
        lds=lds,
        scratch=scratch,
        kernargs=kernargs,
        rsrc1=rsrc1,
        rsrc2=rsrc2,
        rsrc3=rsrc3,
        properties=properties,
        preload=preload,
    )
