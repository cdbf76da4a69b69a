"""Small projects in the place of a recipe's own, for real commands, compilers, CMake and ninja."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet
from tests.execution.conftest import Workshop
from tests.making import EPOCH, make_tiny_root, put_output

from rocwheel_samples.trees import write_tree
from rocwright.catalog.model import Component
from rocwright.model.steps import Input, OutputSpec, Resources, RunAction, Step, TreeAction
from rocwright.sources.archive import pack

CMAKE = sorted(Path("/usr/share").glob("cmake-3.*"))
UNITS = ("a", "b", "c", "d", "e")

GCC = """#!/bin/sh
# as a compiler that is killed in the middle leaves it: half an object, newer than its source
out= last=
for word; do [ "$last" != -o ] || out=$word; last=$word; done
case " $* " in *" -c "*) [ -z "$out" ] || { printf 'half an object' > "$out"; sleep 0.2; } ;; esac
exec /usr/bin/gcc -I/build/src "$@"
"""
SLOW = """#!/bin/sh
# there is time to kill what packs
sleep 1
exec /usr/bin/{name} "$@"
"""
PROJECT = """cmake_minimum_required(VERSION 3.18)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
project(standin C)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
add_compile_options(-ffreestanding -fPIC)
add_link_options(-nostdlib -nostartfiles -fno-use-linker-plugin)
"""
GGML = """add_library(ggml SHARED a.c b.c)
set_target_properties(ggml PROPERTIES VERSION 0.1 SOVERSION 0)
"""
LLAMA = (
    PROJECT
    + GGML
    + """add_library(ggml-vulkan MODULE c.c)
add_library(ggml-cpu-x64 MODULE c.c)
foreach(name llama-server llama-cli llama-bench llama-fit-params test-backend-ops)
  add_executable(${name} d.c e.c)
  target_link_libraries(${name} ggml)
  add_dependencies(${name} ggml-vulkan ggml-cpu-x64)
endforeach()
"""
)
WHISPER = (
    PROJECT
    + GGML
    + """add_library(ggml-vulkan MODULE c.c)
add_library(ggml-cpu-x64 MODULE c.c)
foreach(name server cli bench)
  add_executable(whisper-${name} c.c d.c e.c)
  target_link_libraries(whisper-${name} ggml)
  add_dependencies(whisper-${name} ggml-vulkan ggml-cpu-x64)
endforeach()
"""
)
DIFFUSION = (
    PROJECT
    + """add_library(stable-diffusion SHARED a.c b.c)
foreach(name server cli)
  add_executable(sd-${name} c.c d.c e.c)
  target_link_libraries(sd-${name} stable-diffusion)
endforeach()
"""
)
ROCBLAS = (
    PROJECT
    + """add_library(rocblas SHARED a.c b.c c.c d.c e.c)
install(TARGETS rocblas LIBRARY DESTINATION lib)
"""
)
GLOO = (
    PROJECT
    + """add_library(gloo STATIC a.c b.c c.c d.c e.c)
install(TARGETS gloo ARCHIVE DESTINATION lib)
"""
)
TORCH = (
    PROJECT
    + """add_library(torch_cpu SHARED a.c b.c c.c d.c e.c)
install(TARGETS torch_cpu LIBRARY DESTINATION ${CMAKE_SOURCE_DIR}/torch/lib)
"""
)
SETUP = '''"""As PyTorch's: configures where it must, compiles, and adds to LICENSE while it packs."""
import os, subprocess, sys, time
from pathlib import Path
from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

if not Path("build/build.ninja").exists():
    subprocess.run(["cmake", "-S", ".", "-B", "build", "-G", "Ninja"], check=True)
if "--cmake-only" in sys.argv:
    sys.exit()
subprocess.run(["cmake", "--build", "build", "--target", "install", "-j", "1"], check=True)


class slow_build_py(build_py):
    def copy_file(self, infile, outfile, *more, **how):
        # as a copy is that is cut off
        if not os.path.exists(outfile) and infile.endswith(".so"):
            Path(outfile).parent.mkdir(parents=True, exist_ok=True)
            Path(outfile).write_text("half a copy")
            print("packing", flush=True)
            time.sleep(1)
            Path(outfile).unlink()
        return super().copy_file(infile, outfile, *more, **how)


class licensed(bdist_wheel):
    def run(self):
        before = Path("LICENSE").read_text()
        Path("LICENSE").write_text(before + "and those of others\\n")
        try:
            super().run()
        finally:
            Path("LICENSE").write_text(before)


setup(
    name="torch", version="1.0", packages=["torch"], package_data={"torch": ["lib/*"]},
    has_ext_modules=lambda: True, cmdclass={"bdist_wheel": licensed, "build_py": slow_build_py},
)
'''


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """A project in the place of a recipe's: its files, the environment, and the line at which packing is
    under way (a regular expression)."""

    files: Mapping[str, str]
    env: Mapping[str, str]
    packs: str


LICENSES = {"LICENSE": "l\n", "licenses/LICENSE-jsonhpp": "j\n", "vendor/cpp-httplib/LICENSE": "h\n"}
LLAMA_ENV = {"LLAMA_VERSION": "1", "LLAMA_TARGETS": "gfx1", "LLAMA_COMMIT": "c"}
DIFFUSION_LICENSES = (
    "LICENSE",
    "ggml/LICENSE",
    "thirdparty/LICENSE.darts_clone.txt",
    "thirdparty/libwebp/COPYING",
    "thirdparty/libwebm/LICENSE.TXT",
)
STANDINS = {
    "llama.cpp": StandIn(files={"CMakeLists.txt": LLAMA, **LICENSES}, env=LLAMA_ENV, packs=r"\$ tar "),
    "llama.cpp-hip": StandIn(files={"CMakeLists.txt": LLAMA, **LICENSES}, env=LLAMA_ENV, packs=r"\$ tar "),
    **dict.fromkeys(
        ("whisper.cpp", "whisper.cpp-hip"),
        StandIn(
            files={"CMakeLists.txt": WHISPER, **LICENSES},
            env={"WHISPER_VERSION": "1", "GGML_TARGETS": "gfx1"},
            packs=r"\$ tar ",
        ),
    ),
    **dict.fromkeys(
        ("stable-diffusion.cpp", "stable-diffusion.cpp-hip"),
        StandIn(
            files={"CMakeLists.txt": DIFFUSION, **dict.fromkeys(DIFFUSION_LICENSES, "l\n")},
            env={"SD_VERSION": "1", "SD_COMMIT": "c", "GGML_TARGETS": "gfx1"},
            packs=r"\$ tar ",
        ),
    ),
    "rocblas": StandIn(
        files={"CMakeLists.txt": ROCBLAS},
        env={"ROCM_PATH": "/build/src/rocm", "ROCBLAS_TARGETS": "gfx1", "ROCBLAS_VERSION": "1"},
        packs=r"\$ tar ",
    ),
    "gloo": StandIn(files={"CMakeLists.txt": GLOO}, env={}, packs=r"\$ tar "),
    "pytorch": StandIn(
        files={"CMakeLists.txt": TORCH, "setup.py": SETUP, "LICENSE": "ours\n", "torch/__init__.py": ""},
        env={"PYTHONPATH": "/build/src/site"},
        packs="packing",
    ),
}


TOOLS = (
    *(
        "gcc",
        "as",
        "ld",
        "ar",
        "ranlib",
        "nm",
        "objdump",
        "strip",
        "install",
        "cmake",
        "ninja",
        "make",
        "ccache",
    ),
    *("sed", "grep", "sort", "dirname", "basename", "wc", "tar", "touch", "env", "seq"),
)


def make_compiler_root(folder: Path) -> Path:
    """A root with a compiler, CMake, ninja, make and ccache."""
    inner = [
        subprocess.run(["gcc", f"-print-prog-name={name}"], capture_output=True, text=True).stdout.strip()
        for name in ("cc1", "collect2")
    ]
    programs = [*(f"/usr/bin/{name}" for name in TOOLS), *inner]
    make_tiny_root(
        folder / "root.tar.zst", folder, python=True, whole=True, more=programs, folders=CMAKE[-1:]
    )
    return folder / "root.tar.zst"


def nightly_but(name: str, recipes: Iterable[Component]) -> list[ParameterSet]:
    """Return the recipes as parameters; all but one of that name are nightly."""
    marks = {True: (), False: (pytest.mark.nightly,)}
    return [pytest.param(recipe, id=recipe.name, marks=marks[recipe.name == name]) for recipe in recipes]


def tree_of(shop: Workshop, name: str, files: Mapping[str, str], *, site: bool, compiler: str = GCC) -> Step:
    """A step that gave this project, with a compiler and packers that take their time."""
    folder = write_tree(shop.folder / "tree", dict(files))
    for unit in UNITS:
        (folder / f"{unit}.c").write_text(f"int {unit}(int x) {{ return x * {ord(unit)}; }}\n")
    scripts = dict.fromkeys(("bin/gcc", "rocm/bin/amdclang", "rocm/bin/amdclang++"), compiler)
    for place, text in (scripts | {"bin/gzip": SLOW.format(name="gzip")}).items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text)
        (folder / place).chmod(0o755)
    found = Path(sysconfig.get_path("purelib"))
    for part in (found / "_distutils_hack", *found.glob("setuptools*")) if site else ():
        shutil.copytree(part, folder / "site" / part.name, ignore=shutil.ignore_patterns("__pycache__"))
    step = Step(name=f"tree/{name}", component=name, action=TreeAction(subdir=name))
    packed = shop.folder / "standin.tar.zst"
    pack(folder, packed, epoch=EPOCH)
    put_output(shop.store, step, "tree", packed.read_bytes(), shop.folder)
    return step


def step_of(
    shop: Workshop,
    name: str,
    commands: tuple[str, ...],
    resume: int,
    stand_in: StandIn,
    pattern: str,
    *,
    split: int = 0,
    compiler: str = GCC,
) -> Step:
    """A step that runs these commands on a stand-in."""
    tree = tree_of(shop, name, stand_in.files, site="PYTHONPATH" in stand_in.env, compiler=compiler)
    shop.trees[name] = tree
    env = {"PATH": "/build/src/bin:/usr/bin:/bin", "CC": "gcc"} | dict(stand_in.env)
    outputs = (OutputSpec(name="out", pattern=pattern),)
    action = RunAction(commands=commands, env=env, outputs=outputs, resume=resume, split=split)
    inputs = (
        Input(name="root", key=shop.root.key, output="root"),
        Input(name="src", key=tree.key, output="tree"),
    )
    step = Step(name=name, component=name, action=action, inputs=inputs, resources=Resources(limit=300))
    shop.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    return step
