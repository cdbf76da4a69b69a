"""What the installed HIP compiler writes, read by rocwright and by LLVM's own tools."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from rocwheel.tables import DATA
from rocwheel.wheels.devicecode.code_objects import check_targets, code_objects
from rocwheel_samples.fatbin import gpu_elf, write_wheel
from rocwright.catalog.folders import DATA as CATALOG

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(shutil.which("hipcc") is None, reason="hipcc is not installed"),
]

ELF_MAGIC = b"\x7fELF"
TARGETS = ("gfx1103", "gfx1151", "gfx803")
SOURCE = CATALOG / "sources" / "gfx-smoke" / "hip" / "vector_add.hip"


def run(*words: str | Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(words, env={**os.environ, **(env or {})}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def llvm(tool: str) -> str:
    """The tool on PATH, or beside the clang that hipcc runs."""
    beside = (
        Path(run("hipconfig", "--hipclangpath").strip(), tool) if shutil.which("hipconfig") else Path(tool)
    )
    found = shutil.which(tool) or shutil.which(beside)
    if found is None:
        pytest.skip(f"{tool} is not installed")
    return found


def compile_for(
    folder: Path, *flags: str, targets: tuple[str, ...] = TARGETS, env: dict[str, str] | None = None
) -> Path:
    out = folder / "vector_add.o"
    offload = [f"--offload-arch={target}" for target in targets]
    # A fixed id of the unit, else it is a hash that changes with every flag, and the code with it.
    run(
        "hipcc",
        "-std=c++20",
        "-O2",
        "-cuid=x",
        "-x",
        "hip",
        *offload,
        *flags,
        "-c",
        SOURCE,
        "-o",
        out,
        env=env,
    )
    return out


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_for(tmp_path_factory.mktemp("plain"))


def readelf_flags(folder: Path, content: bytes) -> str:
    file = folder / "one.co"
    file.write_bytes(content)
    (flags,) = re.findall(r"Flags:\s+(.*)", run(llvm("llvm-readelf"), "-h", file))
    return str(flags)


def test_the_targets_of_a_compiled_file_are_those_that_llvm_names(compiled: Path, tmp_path: Path) -> None:
    content = compiled.read_bytes()
    found = code_objects(compiled, hashes=True)
    assert [one.target for one in found] == list(TARGETS)
    assert check_targets(compiled, TARGETS) == []
    starts = [match.start() for match in re.finditer(re.escape(ELF_MAGIC), content)][1:]
    assert len(starts) == len(found)
    for one, start in zip(found, starts, strict=True):
        code = content[start : start + one.size]
        assert hashlib.sha256(code).hexdigest() == one.sha256
        assert readelf_flags(tmp_path, code).split(", ")[1] == one.target


@pytest.mark.parametrize("version", ["2", "3"])
def test_what_clang_compresses_unpacks_to_the_same_code(compiled: Path, tmp_path: Path, version: str) -> None:
    packed = compile_for(tmp_path, "--offload-compress", env={"COMPRESSED_BUNDLE_FORMAT_VERSION": version})
    content = packed.read_bytes()
    assert content[content.index(b"CCOB") + 4] == int(version)
    assert code_objects(packed, hashes=True) == code_objects(compiled, hashes=True)


def test_features_that_are_fixed_are_read_from_name_and_header_alike(tmp_path: Path) -> None:
    path = compile_for(tmp_path, targets=("gfx90a:sramecc+:xnack-", "gfx90a:xnack+", "gfx906"))
    assert [one.target_id for one in code_objects(path)] == [
        "gfx906",
        "gfx90a:sramecc+:xnack-",
        "gfx90a:xnack+",
    ]


def test_a_wheel_around_a_compiled_file_is_checked_exactly(compiled: Path, tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "x-1-py3-none-any.whl", {"x/y.so": compiled.read_bytes()})
    assert check_targets(wheel, TARGETS) == []
    assert check_targets(wheel, TARGETS[:2]) == [
        "x/y.so: code for gfx803, which was not asked for (1 of 1 bundles)"
    ]


def test_every_machine_that_this_llvm_knows_has_the_name_in_the_table(tmp_path: Path) -> None:
    data = tomllib.loads((DATA / "elf_machines.toml").read_text())
    agreed = 0
    for name, mach in data["machines"].items():
        generic = 1 << 24 if "generic" in name else 0
        flags = readelf_flags(tmp_path, gpu_elf(mach | generic, abi=4 if generic else 2)).split(", ")
        if len(flags) > 1 and flags[1].startswith("gfx"):
            assert flags[1] == name
            agreed += 1
        else:
            assert mach in (0x40, 0x4B) or mach >= 0x49, f"{name}: LLVM says {flags}"
    assert agreed > 50
