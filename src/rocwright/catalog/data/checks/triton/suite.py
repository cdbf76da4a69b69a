"""Compiles kernels with the installed Triton, ahead of time, for each GPU; needs no GPU.

usage: suite.py [--out FOLDER] --target NAME:WAVE ..

Prints one line for each kernel and GPU: whether its code is for that GPU, and within its registers and LDS.
With --out, writes the code to FOLDER/KERNEL.hsaco, and the facts for its launch to FOLDER/KERNEL.json.
"""

from __future__ import annotations

import argparse
import json
import re
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import triton
from kernels import KERNELS, Kernel
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

MACHINE = {
    "gfx803": 0x2A, "gfx900": 0x2C, "gfx906": 0x2F, "gfx90c": 0x32, "gfx1103": 0x44, "gfx1151": 0x4A,
}  # fmt: skip
"""EF_AMDGPU_MACH of an ELF file's flags (llvm.org/docs/AMDGPUUsage.html)."""
REGISTERS, LDS = 256, 65536
"""Vector registers that a wave can name, and bytes of LDS that a work-group has, on each of these GPUs."""


def compile_kernel(kernel: Kernel, target: str, wave: int) -> object:
    """Return a kernel compiled for a GPU. Raises what Triton raises."""
    names = kernel.function.arg_names
    types = dict.fromkeys(names, "constexpr")
    types |= {name: f"*{dtype}" for name, dtype in zip(names, kernel.arrays, strict=False)}
    source = ASTSource(kernel.function, types, constexprs=kernel.constants)
    return triton.compile(source, target=GPUTarget("hip", target, wave), options=kernel.options or None)


def judge(compiled: object, target: str) -> tuple[bool, str]:
    """Return whether code is for the GPU and fits it, and its registers, spills and LDS."""
    text, code = compiled.asm["amdgcn"], compiled.asm["hsaco"]
    counts = {name: int(re.search(rf"\.{name}:\s+(\d+)", text)[1])
              for name in ("vgpr_count", "vgpr_spill_count", "group_segment_fixed_size")}  # fmt: skip
    lds = max(counts["group_segment_fixed_size"], compiled.metadata.shared)
    (flags,) = struct.unpack_from("<I", code, 48)
    machine = flags & 0xFF
    right = machine == MACHINE[target] and counts["vgpr_count"] <= REGISTERS and lds <= LDS
    registers = f"{counts['vgpr_count']} registers, {counts['vgpr_spill_count']} spilled, {lds} bytes of LDS"
    return right, registers if machine == MACHINE[target] else f"the code is for machine {machine:#x}"


def tell(name: str, ok: bool, detail: str) -> bool:
    finding = {"name": name, "ok": ok, "detail": detail[:1000], "device": "none"}
    print(f"ROCWRIGHT-CHECK {json.dumps(finding)}", flush=True)
    return ok


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    parser.add_argument("--target", action="append", required=True)
    words = parser.parse_args()
    results = []
    for target, wave in (target.split(":") for target in words.target):
        for kernel in KERNELS:
            name = f"{target}/{kernel.name}"
            try:
                compiled = compile_kernel(kernel, target, int(wave))
                results.append(tell(name, *judge(compiled, target)))
            except Exception as error:  # Triton raises of many kinds
                results.append(
                    tell(name, False, f"{type(error).__name__}: {str(error).strip().splitlines()[-1:]}")
                )
                continue
            if words.out is not None:
                write(words.out / kernel.name.replace("/", "-"), compiled)
    return 0 if all(results) else 1


def write(place: Path, compiled: object) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.with_suffix(".hsaco").write_bytes(compiled.asm["hsaco"])
    facts = {name: getattr(compiled.metadata, name) for name in ("name", "shared", "num_warps", "warp_size")}
    place.with_suffix(".json").write_text(json.dumps(facts))


if __name__ == "__main__":
    sys.exit(main())
