"""Recipes whose ROCm lies in /usr, as Debian and Fedora have it: their commands name what is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rocwheel_samples.tables import each
from rocwheel_samples.trees import write_tree
from rocwright.catalog.load import builtin_catalog

CATALOG = builtin_catalog()
OF_HIP = [one for one in CATALOG.components.values() if "hip-compiler" in one.system.rocm and one.run]
NO_ROCM_HERE = pytest.mark.skipif(
    Path("/opt/rocm").exists(), reason="this machine has a ROCm of its own in /opt/rocm"
)


def program(folder: Path, name: str, text: str = "true") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def configured(tmp_path: Path, recipe: str, **given: str) -> list[str]:
    """The words that a recipe calls CMake with at first, and what it says of ROCm's places."""
    tools = tmp_path / "tools"
    program(tools, "cmake", f'printf \'%s\\n\' "$@" "ROCM_PATH=${{ROCM_PATH:-}}" > {tmp_path}/words')
    env = {"PATH": f"{tools}:/usr/bin:/bin", "ROCBLAS_TARGETS": "gfx1103", "JOBS": "1", **given}
    command = next(command for command in CATALOG.component(recipe).run if "cmake" in command)
    subprocess.run(["sh", "-euc", command], env=env, check=True, cwd=tmp_path, timeout=60)
    return (tmp_path / "words").read_text().splitlines()


def value(words: list[str], name: str) -> str:
    [found] = [one.partition("=")[2] for one in words if one.partition("=")[0] == name]
    return found


@NO_ROCM_HERE
def test_rocblas_is_configured_with_the_clang_of_a_rocm_in_usr(tmp_path: Path) -> None:
    clang, root = tmp_path / "llvm/bin", tmp_path / "usr"
    for name in ("clang", "clang++"):
        program(clang, name, f"echo {tmp_path}/resources")
    program(tmp_path / "tools", "hipconfig", f'[ "$1" = -R ] && echo {root} || echo {clang}')
    words = configured(tmp_path, "rocblas")
    for name in ("-DCMAKE_C_COMPILER", "-DCMAKE_CXX_COMPILER"):
        assert Path(value(words, name)).parent == clang
        assert Path(value(words, name)).is_file()
    assert value(words, "-DTensile_COMPILER") == "hipcc"
    assert value(words, "-DCMAKE_PREFIX_PATH").endswith(f";{root}")
    assert f"ROCM_PATH={root}" in words


@NO_ROCM_HERE
def test_rocblas_is_configured_with_the_amdclang_of_a_providers_rocm(tmp_path: Path) -> None:
    root = tmp_path / "build/rocm"
    program(root / "bin", "amdclang")
    program(tmp_path / "tools", "hipconfig", "exit 1")
    words = configured(tmp_path, "rocblas", ROCM_PATH=str(root))
    assert value(words, "-DCMAKE_CXX_COMPILER") == f"{root}/bin/amdclang++"
    assert value(words, "-DTensile_COMPILER") == "amdclang++"


@each("recipe", OF_HIP, ids=lambda one: one.name)
def test_a_command_that_names_opt_rocm_asks_hipconfig_where_it_is_not(recipe: object) -> None:
    assert hasattr(recipe, "run")
    for command in recipe.run:
        assert "hipconfig" in command or not ("/opt/rocm" in command and "-DCMAKE_C" in command)


SDK = {
    "rocm_sdk/__init__.py": "def initialize_process(**named):\n    print(named)\n",
    "rocm_sdk/_dist_info.py": "ALL_LIBRARIES = {'amdhip64': 1, 'hipblas': 2, 'of-today': 3}\n",
}
"""What TheRock's package has of a name that upstream's build of torch uses."""


@each("tree, loads", [("torch/csrc/Module.cpp", True), ("torchvision/csrc/vision.cpp", False)])
def test_a_torch_on_wheels_of_rocm_loads_their_libraries_where_it_is_installed(
    tmp_path_factory: pytest.TempPathFactory, tree: str, loads: bool
) -> None:
    tmp_path = tmp_path_factory.mktemp("tree")
    write_tree(tmp_path, {tree: "", "torch/__init__.py": "", **SDK})
    program(tmp_path / "tools", "rocm-sdk", 'case "$1" in version) echo 7.14.0 ;; *) echo /sdk ;; esac')
    path = f"{tmp_path}/tools:{Path(sys.executable).parent}:/usr/bin:/bin"
    env = {"PATH": path, "PYTHONPATH": str(tmp_path)}
    commands = [*CATALOG.provider("therock-wheels").setup, 'echo "$PYTORCH_EXTRA_INSTALL_REQUIREMENTS"']
    done = subprocess.run(
        ["sh", "-ec", "\n".join(commands)], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == ("rocm[libraries]==7.14.0\n" if loads else "\n")
    assert (tmp_path / "torch/_rocm_init.py").exists() == loads
    if loads:
        code = "from torch import _rocm_init; _rocm_init.initialize()"
        words = [sys.executable, "-c", code]
        done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout == "{'preload_shortnames': ['amdhip64', 'hipblas'], 'check_version': '7.14.0'}\n"


@each("value, configured", [("ON", True), ("1", True), ("OFF", False)])
def test_a_torch_that_lost_hip_while_it_was_configured_ends_the_build(
    tmp_path_factory: pytest.TempPathFactory, value: str, configured: bool
) -> None:
    tmp_path = tmp_path_factory.mktemp("tree")
    cache = f"A:BOOL=OFF\nUSE_ROCM:BOOL={value}\nUSE_ROCM_CK:BOOL=OFF\n"
    write_tree(tmp_path, {"LICENSE": "x", "build/CMakeCache.txt": cache})
    program(tmp_path / "tools", "python3")
    command = CATALOG.component("pytorch").run[1].replace("/build/LICENSE", "copy")
    env = {"PATH": f"{tmp_path}/tools:/usr/bin:/bin"}
    words = ["sh", "-euc", command]
    done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == configured
    assert ("configured without HIP" in done.stderr) != configured
