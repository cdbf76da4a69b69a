"""A ROCm of a few small libraries that behave as the real ones: they open others by name and read folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from rocwheel.wheels.write import WheelFile, write_wheel

_COMGR = 'const char *comgr_name(void) { return "comgr"; }'
_HSA = """
const char *hsa_profile = "libhsa-amd-aqlprofile64.so";
int numa_nodes(void);
int hsa_nodes(void) { return numa_nodes(); }
"""
_NUMA = "int numa_nodes(void) { return 2; }"
_HIP = """
#include <dlfcn.h>
int hsa_nodes(void);
static int count;
int hip_nodes(void) { return hsa_nodes(); }
int hip_count(void) { return ++count; }
const char *hip_compile(void) {
    void *comgr = dlopen("libamd_comgr.so.3", RTLD_LAZY);
    const char *(*name)(void) = comgr ? (const char *(*)(void))dlsym(comgr, "comgr_name") : 0;
    return name ? name() : dlerror();
}
int hip_itself(void) {
    void *hip = dlopen("libamdhip64.so", RTLD_LAZY);
    int (*more)(void) = hip ? (int (*)(void))dlsym(hip, "hip_count") : 0;
    return more ? more() : -1;
}
"""
_BLAS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int hip_nodes(void);
int blas_nodes(void) { return hip_nodes(); }
const char *blas_kernel(const char *gpu) {
    static char path[4096], line[100];
    Dl_info me;
    dladdr((void *)blas_kernel, &me);
    snprintf(path, sizeof path, "%s", me.dli_fname);
    snprintf(strrchr(path, '/'), 200, "/rocblas/library/TensileLibrary_lazy_%s.dat", gpu);
    FILE *file = fopen(path, "r");
    if (!file) return "";
    fgets(line, sizeof line, file);
    fclose(file);
    return line;
}
"""
NATIVE = """
const char *blas_kernel(const char *gpu);
const char *hip_compile(void);
int blas_nodes(void);
int hip_count(void);
int hip_itself(void);
const char *kernel(const char *gpu) { return blas_kernel(gpu); }
const char *compile(void) { return hip_compile(); }
int nodes(void) { return blas_nodes(); }
int count(void) { return hip_count() * 10 + hip_itself(); }
"""
"""count() is 12 where the name without a version leads to the same library: 11, and once more."""

USE = """
import ctypes, json, pathlib, sys
native = ctypes.CDLL(next(str(one) for one in pathlib.Path(sys.argv[1]).rglob("_native*.so")))
for name in ("kernel", "compile"):
    getattr(native, name).restype = ctypes.c_char_p
maps = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
print(json.dumps({
    "nodes": native.nodes(),
    "kernel": native.kernel(b"gfx1151").decode(),
    "compile": native.compile().decode(),
    "count": native.count(),
    "loaded": sorted(maps),
}))
"""


def compile_library(
    path: Path, code: str, *, soname: str = "", needs: tuple[Path, ...] = (), flags: tuple[str, ...] = ()
) -> Path:
    """A shared library, linked against `needs` by their SONAMEs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_name(f"{path.name}.c")
    source.write_text(code)
    words: list[str | Path] = ["gcc", "-shared", "-fPIC", "-O1", "-w", "-o", path, source, *needs, *flags]
    if soname:
        words.append(f"-Wl,-soname,{soname}")
    folders = {need.parent for need in needs}
    words += [f"-Wl,-rpath-link,{folder}" for folder in folders]
    subprocess.run(words, check=True, cwd=path.parent)
    source.unlink()
    return path


def make_rocm(root: Path) -> Path:
    """A ROCm root: HIP, HSA, comgr, rocBLAS with kernels for three targets, a library of the system's."""
    lib = root / "lib"
    numa = compile_library(lib / "rocm_sysdeps" / "lib" / "libnuma.so.1", _NUMA, soname="libnuma.so.1")
    compile_library(lib / "libamd_comgr.so.3.0", _COMGR, soname="libamd_comgr.so.3")
    hsa = compile_library(
        lib / "libhsa-runtime64.so.1.15",
        _HSA,
        soname="libhsa-runtime64.so.1",
        needs=(numa,),
        flags=("-Wl,-rpath,$ORIGIN/rocm_sysdeps/lib",),
    )
    _link(lib, "libamd_comgr.so.3", "libamd_comgr.so.3.0")
    _link(lib, "libhsa-runtime64.so.1", hsa.name)
    flags = (f"-Wl,-rpath-link,{numa.parent}",)
    hip = compile_library(
        lib / "libamdhip64.so.6.4", _HIP, soname="libamdhip64.so.6", needs=(hsa,), flags=flags
    )
    _link(lib, "libamdhip64.so.6", hip.name)
    _link(lib, "libamdhip64.so", hip.name)
    blas = compile_library(
        lib / "librocblas.so.4.4", _BLAS, soname="librocblas.so.4", needs=(hip,), flags=flags
    )
    _link(lib, "librocblas.so.4", blas.name)
    kernels = lib / "rocblas" / "library"
    kernels.mkdir(parents=True)
    for target in ("gfx90a", "gfx1100", "gfx1151"):
        (kernels / f"TensileLibrary_lazy_{target}.dat").write_text(f"kernels for {target}")
        (kernels / f"Kernels.so-000-{target}.hsaco").write_bytes(target.encode() * 100)
    (kernels / "TensileManifest.txt").write_text("all")
    licence = root / "share" / "doc" / "rocblas" / "LICENSE.md"
    licence.parent.mkdir(parents=True)
    licence.write_text("MIT")
    return root


def _link(folder: Path, name: str, to: str) -> None:
    (folder / name).symlink_to(to)


def make_wheel(
    folder: Path,
    rocm: Path,
    *,
    code: str = NATIVE,
    needs: tuple[str, ...] = ("librocblas.so.4", "libamdhip64.so.6"),
    requires: tuple[str, ...] = (),
    files: tuple[WheelFile, ...] = (),
    place: str = "needy/_native.so",
    library: Path | None = None,
) -> Path:
    """A wheel with one library: that given, or one that needs ROCm and looks for it in /opt/rocm."""
    library = library or compile_library(
        folder / "build" / "_native.so",
        code,
        needs=tuple(rocm / "lib" / name for name in needs),
        flags=(
            "-Wl,-rpath,/opt/rocm/lib",
            f"-Wl,-rpath-link,{rocm}/lib:{rocm}/lib/rocm_sysdeps/lib",
            "-Wl,--no-as-needed",
        ),
    )
    info = "needy-1.0.dist-info"
    metadata = "Metadata-Version: 2.1\nName: needy\nVersion: 1.0\n"
    metadata += "".join(f"Requires-Dist: {one}\n" for one in requires)
    wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n"
    out = folder / "needy-1.0-py3-none-linux_x86_64.whl"
    write_wheel(
        out,
        [
            WheelFile(path="needy/__init__.py", content=b"from pathlib import Path\n"),
            WheelFile(path=place, content=library, mode=0o755),
            WheelFile(path=f"{info}/METADATA", content=metadata.encode()),
            WheelFile(path=f"{info}/WHEEL", content=wheel.encode()),
            *files,
        ],
        epoch=0,
    )
    return out


def use(site: Path) -> dict[str, object]:
    """What the wheel's library does in a process of its own, with a clean environment."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", USE, site],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found
