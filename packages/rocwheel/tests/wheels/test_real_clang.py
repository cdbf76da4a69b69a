"""What clang compiles for many targets, read by rocwright and by LLVM's own tools."""

from __future__ import annotations

import ctypes
from collections import Counter
from pathlib import Path

import pytest

from rocbase.files.atomic import sha256_file
from rocwheel.wheels.devicecode.code_objects import check_targets, code_objects
from rocwheel.wheels.devicecode.fatbin import FatBinary, fat_binary
from rocwheel.wheels.inspection import kernels_of
from rocwheel.wheels.source import FileSource
from rocwheel_samples.hip_compiler import compile_library, llvm, run

pytestmark = pytest.mark.real

TARGETS = ("gfx1103", "gfx1151", "gfx803", "gfx90a:xnack+")
UNITS = (("add", "scale"), ("other",))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_library(tmp_path_factory.mktemp("plain"), TARGETS, units=UNITS)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_library(tmp_path_factory.mktemp("packed"), TARGETS, units=UNITS, compress=True)


def read(path: Path) -> FatBinary:
    found = fat_binary(FileSource(path))
    assert found is not None
    return found


@pytest.mark.parametrize("which", ["library", "packed"])
def test_every_wrapper_leads_to_a_bundle(which: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(which)
    found = read(path)
    assert [one.bundle for one in found.wrappers] == [one.offset for one in found.bundles]
    assert found.unreached == ()
    assert len(found.bundles) == 2


@pytest.mark.parametrize("which", ["library", "packed"])
def test_the_loader_sees_the_bundles_where_we_do(which: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(which)
    content = path.read_bytes()
    loaded = ctypes.CDLL(str(path))
    loaded.registered_bundle.restype = ctypes.c_void_p
    found = read(path)
    assert loaded.registered_count() == len(found.bundles)
    for index, bundle in enumerate(found.bundles):
        begin = ctypes.string_at(loaded.registered_bundle(index), bundle.size)
        assert begin == content[bundle.offset : bundle.end]


def test_compressed_code_is_the_same_as_plain(library: Path, packed: Path) -> None:
    assert code_objects(packed, hashes=True) == code_objects(library, hashes=True)
    assert check_targets(packed, TARGETS) == []
    assert {one.compression for one in read(packed).bundles} == {"zstd"}


def test_packed_relocations_lead_to_the_bundles_as_the_loader_finds_them(tmp_path: Path) -> None:
    path = compile_library(tmp_path, TARGETS[:1], units=UNITS, link=["-Wl,--pack-dyn-relocs=relr"])
    found = read(path)
    assert {one.pointer.form for one in found.wrappers if one.pointer} == {"relr"}
    assert [one.bundle for one in found.wrappers] == [one.offset for one in found.bundles]


def test_the_wrapper_of_an_object_file_leads_to_its_bundle_by_a_symbol(library: Path) -> None:
    (one,) = read(library.with_name(f"{library.name}.0.o")).wrappers
    assert one.pointer is not None
    assert one.pointer.form == "symbol"
    assert one.bundle == read(library.with_name(f"{library.name}.0.o")).bundles[0].offset


def test_a_program_at_fixed_addresses_holds_the_addresses_itself(library: Path) -> None:
    objects = [library.with_name("runtime.o"), library.with_name(f"{library.name}.0.o")]
    main = library.with_name("main.c")
    main.write_text("int main(void) { return 0; }\n")
    program = library.with_name("program")
    run(llvm("clang"), "-no-pie", "-fuse-ld=lld", main, *objects, "-o", program)
    (one,) = read(program).wrappers
    assert one.pointer is not None
    assert (one.pointer.form, one.bundle) == ("place", read(program).bundles[0].offset)


def test_a_dll_is_read_as_a_library_is(library: Path, tmp_path: Path) -> None:
    source = library.with_name(f"{library.name}.0.hip")
    windows = ("--target=x86_64-pc-windows-msvc", "-x", "hip", "-nogpulib", "-nogpuinc", "-O2", "-cuid=unit0")
    targets = [f"--offload-arch={target}" for target in TARGETS]
    run(llvm("clang++"), *windows, *targets, "-c", source, "-o", tmp_path / "x.o")
    run(llvm("lld-link"), "/dll", "/noentry", "/force:unresolved", tmp_path / "x.o", f"/out:{tmp_path}/x.dll")
    found = read(tmp_path / "x.dll")
    assert [one.bundle for one in found.wrappers] == [one.offset for one in found.bundles]
    assert {one.target_id for one in code_objects(tmp_path / "x.dll")} == set(TARGETS)


def test_llvm_extracts_the_same_code(library: Path) -> None:
    run(llvm("llvm-objdump"), "--offloading", library.name, cwd=library.parent)
    dumped = Counter(
        (path.name.partition("amdhsa--")[2], sha256_file(path))
        for path in library.parent.glob(f"{library.name}.*.hip*-*")
    )
    assert dumped == Counter((one.target_id, one.sha256) for one in code_objects(library, hashes=True))


def test_the_kernels_of_each_target_are_told_with_their_wave_size(packed: Path) -> None:
    found = {
        (one.target, kernel.name): kernel.wave for one, kernels in kernels_of(packed) for kernel in kernels
    }
    assert {name for _, name in found} == {"add", "scale", "other"}
    assert {target: wave for (target, _), wave in found.items()} == {
        "gfx1103": 32,
        "gfx1151": 32,
        "gfx803": 64,
        "gfx90a": 64,
    }
