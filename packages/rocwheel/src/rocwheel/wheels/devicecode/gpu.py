"""The GPU that an AMDGPU code object's header says it is for."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from rocbase.errors import CheckError, InputError
from rocbase.toml.folders import layers, read_toml
from rocwheel.tables import data_folders
from rocwheel.wheels.elf import MAGIC

HEADER_SIZE = 64
MOST_KEPT = 256
"""Answers that are kept for the next to ask."""

_CLASS64, _LITTLE, _OSABI_AMDGPU_HSA, _EM_AMDGPU = 2, 1, 64, 224
_MACH = 0xFF
_GENERIC_VERSION_SHIFT = 24

# e_ident[EI_ABIVERSION]: 1 is code object version 3, 2 is 4, and so on (LLVM AMDGPUUsage, "Header").
_ABI_V3, _ABI_V4 = 1, 2
# Feature masks: (name, mask, value that says off, value that says on); any other says unsupported or either.
_FEATURES_V3 = (("sramecc", 0x200, None, 0x200), ("xnack", 0x100, None, 0x100))
_FEATURES_V4 = (("sramecc", 0xC00, 0x800, 0xC00), ("xnack", 0x300, 0x200, 0x300))


class GpuHeader(NamedTuple):
    """What an AMDGPU ELF header says: `gfx90a`, with `("sramecc+", "xnack-")` where they are fixed.

    `generic_version` is 0 but for generic targets; `abi` is the code object version, 3 and up.
    """

    target: str
    features: tuple[str, ...]
    generic_version: int
    abi: int


@cache
def machines() -> Mapping[int, str]:
    """Processor names by EF_AMDGPU_MACH value, from the catalog. Raises InputError where a table is wrong."""
    names: dict[int, str] = {}
    for path in layers("elf_machines.toml", data_folders()):
        table = read_toml(path).get("machines")
        if not isinstance(table, dict) or not all(isinstance(value, int) for value in table.values()):
            raise InputError(
                f"{path}: `machines` is not a table of numbers",
                cause="it is missing, or one of its values is not a whole number",
                next_step="write each processor below [machines] as NAME = 0x... (EF_AMDGPU_MACH)",
            )
        names |= {value: name for name, value in table.items()}
    return names


@cache
def machines_of(word: str) -> frozenset[str]:
    """The processors that a word of a path stands for: a name, or a family such as gfx115x."""
    digits = word.lower().removeprefix("gfx").replace("x", "[0-9a-f]")
    return frozenset(name for name in machines().values() if re.fullmatch(f"gfx{digits}", name))


@cache
def any_machine() -> str:
    """A regular expression of any processor's name, the longest first: gfx90a68 is gfx90a with 0x68 units."""
    return "|".join(map(re.escape, sorted(set(machines().values()), key=lambda name: (-len(name), name))))


def is_gpu_elf(header: bytes) -> bool:
    """Whether a file that begins with `header` is itself an AMDGPU ELF file."""
    return header.startswith(MAGIC) and header[18:20] == _EM_AMDGPU.to_bytes(2, "little")


def gpu_header(header: bytes, subject: str) -> GpuHeader:
    """Read the first 64 bytes of an AMDGPU code object.

    Raises CheckError where they are no such header, or name a machine that the catalog does not know.
    Source of the layout: LLVM AMDGPUUsage, "ELF Code Object", "Header".
    """
    if len(header) < HEADER_SIZE or not header.startswith(MAGIC):
        raise _wrong(subject, "it does not start with an ELF header")
    machine = int.from_bytes(header[18:20], "little")
    if (header[4], header[5], machine) != (_CLASS64, _LITTLE, _EM_AMDGPU):
        raise _wrong(subject, f"it is ELF for machine {machine}, not 64-bit AMDGPU ({_EM_AMDGPU})")
    if header[7] != _OSABI_AMDGPU_HSA:
        raise _wrong(subject, f"its OS ABI is {header[7]}, not AMDGPU HSA ({_OSABI_AMDGPU_HSA})")
    abi = header[8]
    if abi < _ABI_V3:
        raise _wrong(subject, "it is code object version 2, as compilers wrote before 2020")
    (flags,) = struct.unpack_from("<I", header, 48)
    mach = flags & _MACH
    target = machines().get(mach)
    if target is None:
        raise CheckError(
            f"a code object is for an unknown GPU: EF_AMDGPU_MACH is {mach:#05x}",
            cause="the target is newer than rocwheel's table, or the file is damaged",
            next_step="update rocwheel, or add it to an elf_machines.toml in ROCWRIGHT_CATALOG",
            subject=subject,
        )
    return _decoded(target, flags, abi)


@lru_cache(MOST_KEPT)
def _decoded(target: str, flags: int, abi: int) -> GpuHeader:
    """What the flags of a header say; the same few come hundreds of times in a library."""
    features = []
    for name, mask, off, enabled in _FEATURES_V4 if abi >= _ABI_V4 else _FEATURES_V3:
        if flags & mask == enabled:
            features.append(f"{name}+")
        elif flags & mask == off:
            features.append(f"{name}-")
    return GpuHeader(
        target=target,
        features=tuple(features),
        generic_version=flags >> _GENERIC_VERSION_SHIFT,
        abi=abi + 2,
    )


def _wrong(subject: str, reason: str) -> CheckError:
    return CheckError(
        f"not a valid ELF file: {reason}",
        cause="the file is truncated, damaged, or not the kind of file its name says",
        next_step="build the file again, or get a fresh copy",
        subject=subject,
    )
