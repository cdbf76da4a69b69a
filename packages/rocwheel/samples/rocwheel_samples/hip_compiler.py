"""HIP libraries for many targets, compiled by Debian's clang; no GPU and nothing of ROCm is needed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import rocwheel_samples.llvm
from rocwheel.wheels.choose import ANY_GPU
from rocwheel_samples.missing import skipped_where_missing

# What compiled code calls on the host, in place of HIP's own library; it keeps what was registered.
RUNTIME = """
#define SEEN 4096
static const void *seen[SEEN];
static int count;
void **__hipRegisterFatBinary(const void *wrapper) {
    if (count < SEEN) seen[count++] = wrapper;
    return (void **)seen;
}
void __hipUnregisterFatBinary(void **module) {}
void __hipRegisterFunction(void) {}
void __hipRegisterVar(void) {}
int __hipPopCallConfiguration(void) { return 0; }
int hipLaunchKernel(void) { return 0; }
int registered_count(void) { return count; }
const void *registered_wrapper(int index) { return seen[index]; }
const void *registered_bundle(int index) { return ((const void *const *)seen[index])[1]; }
"""

PRELUDE = """
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
struct dim3 { unsigned x, y, z; };
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
extern "C" int __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, void *);
"""

KERNEL = """
extern "C" __global__ void {name}(float *a, const float *b, int n) {{
    int i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
    if (i < n) a[i] = a[i] * b[i] + {number}.0f;
}}
"""


@skipped_where_missing()
def llvm(tool: str) -> str:
    """The path of one of LLVM's tools; skips the test where it is not installed (fails in CI)."""
    return rocwheel_samples.llvm.llvm(tool)


def run(*words: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=os.environ | (env or {}),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stderr[-3000:]}"
    return done.stdout


def compile_library(
    folder: Path,
    targets: Sequence[str],
    *,
    name: str = "libkernels.so",
    units: Sequence[Sequence[str] | str] = (("add",),),
    compress: bool | str = False,
    flags: Sequence[str] = (),
    link: Sequence[str] = (),
) -> Path:
    """A shared library with one bundle for each unit, in `folder`.

    A unit is the names of its kernels, or HIP source text (PRELUDE stands before it). `compress` makes
    compressed bundles; "2" or "3" says in which format, True leaves that to the compiler. The library opens
    anywhere: it holds a stub of the HIP runtime, whose registered_count() and registered_bundle(i) tell what
    the library handed to it.
    """
    clang = llvm("clang++")
    folder.mkdir(parents=True, exist_ok=True)
    packed = {"COMPRESSED_BUNDLE_FORMAT_VERSION": compress} if isinstance(compress, str) else {}
    objects = [_runtime(folder)]
    for index, unit in enumerate(units):
        source = folder / f"{name}.{index}.hip"
        source.write_text(PRELUDE + (unit if isinstance(unit, str) else _kernels(unit)))
        out = source.with_suffix(".o")
        run(
            clang,
            *("-x", "hip", "-nogpulib", "-nogpuinc", "-O2", "-fPIC", "-Wno-unused-command-line-argument"),
            # a fixed id of the unit, else it is a hash of every flag, and the code changes with it
            f"-cuid=unit{index}",
            *(f"--offload-arch={target}" for target in targets),
            *(["-mcode-object-version=6"] if any("generic" in target for target in targets) else []),
            *(["-use-spirv-backend"] if ANY_GPU in targets else []),
            *(["--offload-compress"] if compress else []),
            *flags,
            *("-c", source.name, "-o", out.name),
            cwd=folder,
            env=packed,
        )
        objects.append(out)
    library = folder / name
    run(llvm("clang"), "-shared", "-fuse-ld=lld", *link, *objects, "-o", library)
    return library


def _runtime(folder: Path) -> Path:
    source, out = folder / "runtime.c", folder / "runtime.o"
    if not out.exists():
        source.write_text(RUNTIME)
        run(llvm("clang"), "-O1", "-fPIC", "-fvisibility=default", "-c", source, "-o", out)
    return out


def _kernels(names: Sequence[str]) -> str:
    return "".join(KERNEL.format(name=name, number=number) for number, name in enumerate(names, 1))
