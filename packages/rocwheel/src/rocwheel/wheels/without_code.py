"""Files without device code that depend on a GPU: they need ROCm's runtime, or compile for the GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rocbase.errors import CheckError
from rocwheel.wheels import elf
from rocwheel.wheels.formats import PE_MAGIC
from rocwheel.wheels.members import Member, members
from rocwheel.wheels.needed import linkage
from rocwheel.wheels.source import ByteSource

COMPILES = (b"amdgcn-amd-amdhsa", b"hiprtcCompileProgram", b"--offload-arch", b"@triton.jit")
"""Names in a program or a Python file that compiles for the GPU: of LLVM's target, of HIP's run-time
compiler and of its driver's option, and what marks a kernel of Triton."""

_ROCM = (
    "amdhip64|hsa-runtime64|hsakmt|hiprtc|amd_comgr|amdocl64|rccl|MIOpen|migraphx|"
    "(?:hip|roc)(?:blas|blaslt|fft|rand|solver|sparse|sparselt)"
)
_LIBRARY = re.compile(rf"lib(?:{_ROCM})(?:-[0-9a-f]{{8}})?\.so\b")
_DLL = re.compile(rf"(?:lib)?(?:{_ROCM})(?:_\d+)?\.dll".encode(), re.IGNORECASE)
_RELEASE = re.compile(r"amdhip64(?:-[0-9a-f]{8})?(?:\.so\.|_)(\d+)")
_OVERLAP = 64
"""Bytes that two pieces of a file share, so that no name is cut: the longest has fewer."""


class Dependence(NamedTuple):
    """Why `path` depends on the GPU; `runtime_only`: it needs the runtime, and compiles nothing."""

    path: str
    reason: str
    runtime_only: bool


def dependences(path: Path) -> Iterator[Dependence]:
    """Yield the files of `path`, which holds no GPU code, that depend on a GPU all the same.

    Raises InputError if `path` cannot be read, CheckError if it is damaged as a whole.
    """
    for member in members(path):
        is_elf = member.head.startswith(elf.MAGIC)
        if not is_elf and not member.head.startswith(PE_MAGIC) and not member.path.endswith(".py"):
            continue
        try:
            yield from _of_member(member, member.open(), is_elf=is_elf)
        except CheckError as error:
            yield Dependence(
                member.path, f"it cannot be read: {error.message}; {error.cause}", runtime_only=False
            )


def _of_member(member: Member, source: ByteSource, *, is_elf: bool) -> Iterator[Dependence]:
    names: dict[str, None] = {}
    if is_elf and (needs := linkage(source)) is not None:
        names.update(dict.fromkeys(name for name in needs.needed if _LIBRARY.match(name)))
    tail = b""
    for piece in source.chunks(0, source.size):
        text = tail + piece
        if mark := next((mark.decode() for mark in COMPILES if mark in text), ""):
            reason = f"it names {mark}: it compiles for the GPU when it runs, and for which GPUs was not read"
            yield Dependence(member.path, reason, runtime_only=False)
            return
        if member.head.startswith(PE_MAGIC):
            names.update(dict.fromkeys(name.decode() for name in _DLL.findall(text)))
        tail = text[-_OVERLAP:]
    if names:
        release = next((f" {match[1]}" for name in names if (match := _RELEASE.search(name))), "")
        needs_runtime = f"needs ROCm's runtime{release} ({', '.join(names)})"
        reason = f"{needs_runtime}; holds no device code; what it loads by name was not seen"
        yield Dependence(member.path, reason, runtime_only=True)
