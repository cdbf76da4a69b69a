"""Compiles the HIP program for the targets in GFX_TARGETS into the wheel, the same bytes each time.

GFX_TARGETS  GPU targets separated by semicolons: gfx803;gfx1103;gfx1151 (needed)
CXX          a clang++ that compiles HIP, or hipcc (default hipcc); may carry a launcher and flags
CXXFLAGS, LDFLAGS  more flags
CCACHE_DIR   where it is set and ccache is installed, compile through ccache
MAX_JOBS     compilers at a time (default: as many as there are processors)
"""

import os
import re
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

TARGET = re.compile(r"gfx[0-9a-z]+(-[0-9a-z]+)*(:(sramecc|xnack)[+-])*")

# What would differ from one machine or day to the next: times in the zip, file modes.
os.environ.setdefault("SOURCE_DATE_EPOCH", "315532800")
os.umask(0o022)


def targets() -> list[str]:
    """GPU targets asked for, in one order whatever the order of asking."""
    wanted = sorted(set(re.split(r"[;,\s]+", os.environ.get("GFX_TARGETS", ""))) - {""})
    if not wanted:
        raise SystemExit(
            "gfx-smoke: GFX_TARGETS is not set\n  next    GFX_TARGETS=gfx1151 (rocminfo says which)"
        )
    for target in wanted:
        if not TARGET.fullmatch(target):
            raise SystemExit(f"gfx-smoke: GFX_TARGETS names {target!r}, no GPU target such as gfx1151")
    return wanted


def compiler() -> list[str]:
    command = shlex.split(os.environ.get("CXX") or "hipcc")
    if os.environ.get("CCACHE_DIR") and shutil.which("ccache") and Path(command[0]).name != "ccache":
        command.insert(0, "ccache")
    return command


def compile_program(program: Path, scratch: Path, version: str) -> None:
    """Compile hip/ into the executable `program`; objects go to `scratch`."""
    wanted = targets()
    common = [
        "-std=c++20",
        "-O3",
        "-g0",
        "-Wall",
        "-Wextra",
        f"-ffile-prefix-map={Path.cwd()}=.",
        "-D__HIP_PLATFORM_AMD__",
        f'-DGFX_SMOKE_TARGETS="{";".join(wanted)}"',
        f'-DGFX_SMOKE_VERSION="{version}"',
        *shlex.split(os.environ.get("CXXFLAGS", "")),
    ]
    architectures = [f"--offload-arch={target}" for target in wanted]

    def compile_one(source: Path) -> Path:
        object_file = scratch / f"{source.stem}.o"
        if source.suffix == ".hip":
            # The unit's id names a symbol; left to the compiler, it is a hash of the path.
            language = ["-x", "hip", *architectures, f"-cuid=gfx_smoke_{source.stem}"]
        else:
            language = ["-x", "c++"]  # said aloud, since hipcc takes .cpp for HIP
        command = [*compiler(), *common, *language, "-c", str(source), "-o", str(object_file)]
        print(shlex.join(command), flush=True)
        subprocess.run(command, check=True)
        return object_file

    scratch.mkdir(parents=True, exist_ok=True)
    program.parent.mkdir(parents=True, exist_ok=True)
    sources = sorted([*Path("hip").glob("*.cpp"), *Path("hip").glob("*.hip")])
    jobs = int(os.environ.get("MAX_JOBS") or os.cpu_count() or 1)
    with ThreadPoolExecutor(jobs) as pool:
        objects = list(pool.map(compile_one, sources))
    link = [*compiler(), *map(str, objects), "-o", str(program), "-lamdhip64"]
    link += ["-Wl,--build-id=sha1", "-Wl,--as-needed", "-s", *shlex.split(os.environ.get("LDFLAGS", ""))]
    print(shlex.join(link), flush=True)
    subprocess.run(link, check=True)


class BuildWithProgram(build_py):
    """The Python files, and the program beside them, with modes that do not depend on the checkout."""

    def run(self) -> None:
        super().run()
        package = Path(self.build_lib) / "gfx_smoke"
        scratch = Path(self.get_finalized_command("build").build_temp)
        compile_program(package / "bin" / "gfx-smoke", scratch, self.distribution.get_version())
        for path in package.rglob("*"):
            path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)


class PlatformDistribution(Distribution):
    """Holds machine code, which setuptools otherwise learns from extension modules alone."""

    def has_ext_modules(self) -> bool:
        return True


class WheelForAnyPython(bdist_wheel):
    """No Python ABI is used, only the platform's."""

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", super().get_tag()[2])


setup(
    distclass=PlatformDistribution,
    cmdclass={"build_py": BuildWithProgram, "bdist_wheel": WheelForAnyPython},
)
