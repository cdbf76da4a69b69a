"""Code objects for tests, assembled and linked by LLVM from a few lines."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

PLACES = (*sorted(Path("/usr/lib").glob("llvm-*/bin"), reverse=True), Path("/opt/rocm/llvm/bin"))


def llvm_tool(name: str, *, also: tuple[str, ...] = ()) -> Path:
    """A tool of the newest LLVM here that has it beside `also`; the test is skipped where there is none."""
    for place in PLACES:
        if all((place / one).exists() for one in (name, *also)):
            return place / name
    found = shutil.which(name)
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} is not installed")
        pytest.skip(f"{name} is not installed")
    return Path(found)


def kernel_source(
    name: str = "add",
    body: str = "s_endpgm",
    *,
    descriptor: Mapping[str, int] | None = None,
    metadata: Mapping[str, int | str] | None = None,
) -> str:
    """One kernel in assembly: its code, its descriptor's directives without `.amdhsa_`, its metadata."""
    directives = {"next_free_vgpr": 8, "next_free_sgpr": 16, "kernarg_size": 16} | dict(descriptor or {})
    told: dict[str, int | str] = {
        "kernarg_segment_size": directives["kernarg_size"],
        "group_segment_fixed_size": directives.get("group_segment_fixed_size", 0),
        "private_segment_fixed_size": directives.get("private_segment_fixed_size", 0),
        "kernarg_segment_align": 8,
        "wavefront_size": 32 if directives.get("wavefront_size32") else 64,
        "sgpr_count": directives["next_free_sgpr"],
        "vgpr_count": directives["next_free_vgpr"],
        "max_flat_workgroup_size": 1024,
        **(metadata or {}),
    }
    lines = "".join(f"\n    .{key}: {value}" for key, value in told.items())
    return f"""
.text
.globl {name}
.p2align 8
.type {name},@function
{name}:
{body}
.L{name}_end:
.size {name}, .L{name}_end-{name}
.rodata
.p2align 6
.amdhsa_kernel {name}
{chr(10).join(f"  .amdhsa_{key} {value}" for key, value in directives.items())}
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: {name}
    .symbol: {name}.kd{lines}
    .args: [{{.offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}}]
...
.end_amdgpu_metadata
"""


def assemble(folder: Path, source: str, target: str, *flags: str, name: str = "code") -> Path:
    """A linked code object for `target`."""
    path, out = folder / f"{name}.s", folder / f"{name}.co"
    path.write_text(source)
    clang = llvm_tool("clang", also=("ld.lld",))
    done = subprocess.run(
        [clang, "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}", *flags, path, "-o", out],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return out


def damages(code: bytes) -> Iterator[bytes]:
    """The same file cut short at many places, and with one byte wrong at many places that are not zero."""
    yield from (code[:end] for end in range(0, len(code), 61))
    for at in (at for at in range(0, len(code)) if code[at] and (at < 64 or at % 3 == 0)):
        yield code[:at] + bytes([code[at] ^ 0xFF]) + code[at + 1 :]
