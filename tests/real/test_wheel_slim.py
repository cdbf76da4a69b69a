"""Wheels and packages that others built, made smaller by rocwright, and loaded."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real.real_wheels import debian_package, real_wheel
from tests.real.stub_libraries import stub_libraries

from rocwheel.wheels.devicecode.code_objects import code_objects, fat_binaries, read_code
from rocwheel.wheels.metadata import read_record
from rocwheel.wheels.slim import slim
from rocwheel_samples.hip_compiler import llvm, run

pytestmark = pytest.mark.real

SYSTEM = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "libdl.so.2"}
ROCM = "onnxruntime/capi/libonnxruntime_providers_rocm.so"

REGISTERED = """
import ctypes, hashlib, json, sys
library = ctypes.CDLL(sys.argv[1])
library.registered_bundle.restype = ctypes.c_void_p
found = []
for index in range(library.registered_count()):
    address = library.registered_bundle(index)
    head = ctypes.string_at(address, 32)
    code, at = {"kind": head[:4].decode()}, address + 32
    for _ in range(int.from_bytes(head[24:], "little") if head.startswith(b"__CLANG") else 0):
        offset, size, length = (ctypes.c_uint64.from_address(at + 8 * i).value for i in range(3))
        name = ctypes.string_at(at + 24, length).decode()
        code[name] = hashlib.sha256(ctypes.string_at(address + offset, size)).hexdigest()
        at += 24 + length
    found.append(code)
print(json.dumps(found))
"""


def loaded(library: Path, *folders: Path, script: str = REGISTERED) -> str:
    env = os.environ | {"LD_LIBRARY_PATH": ":".join(map(str, folders))}
    done = subprocess.run(
        [sys.executable, "-c", script, str(library)], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def onnxruntime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("onnxruntime")
    return slim(real_wheel("onnxruntime-rocm", "1.22.2.post3"), ["gfx1030"], out, epoch=0).out


def test_onnxruntime_keeps_the_same_code_of_one_target_and_names_it(onnxruntime: Path) -> None:
    assert onnxruntime.name == ("onnxruntime_rocm-1.22.2.post3+gfx1030-cp311-cp311-manylinux_2_34_x86_64.whl")
    before = code_objects(real_wheel("onnxruntime-rocm", "1.22.2.post3"), hashes=True)
    after = code_objects(onnxruntime, hashes=True)
    assert after == [one for one in before if one.target == "gfx1030"]
    assert len(after) == 95


def test_onnxruntimes_library_has_little_more_than_must_stay(onnxruntime: Path) -> None:
    wheel = real_wheel("onnxruntime-rocm", "1.22.2.post3")
    gone = sum(one.size for one in code_objects(wheel) if one.target != "gfx1030")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(onnxruntime) as new:
        assert new.getinfo(ROCM).file_size <= 1.02 * (old.getinfo(ROCM).file_size - gone)
        others = {info.filename: info.CRC for info in old.infolist() if info.filename != ROCM}
        same = {info.filename.replace("+gfx1030", ""): info.CRC for info in new.infolist()}
        differing = {name for name, crc in others.items() if same[name] != crc}
        assert {Path(name).name for name in differing} == {"METADATA", "RECORD"}
        rows = read_record(new.read(next(name for name in new.namelist() if name.endswith("/RECORD"))))
        digests = {row.path: row.sha256 for row in rows}
        assert digests[ROCM] == hashlib.sha256(new.read(ROCM)).hexdigest()


def test_onnxruntimes_library_loads_and_hands_over_the_code_that_it_had(
    onnxruntime: Path, tmp_path: Path
) -> None:
    found = {}
    for name, wheel in (("old", real_wheel("onnxruntime-rocm", "1.22.2.post3")), ("new", onnxruntime)):
        with zipfile.ZipFile(wheel) as archive:
            library = Path(archive.extract(ROCM, tmp_path / name))
        if name == "old":
            # what the wheel needs of ROCm is not here
            stub_libraries(tmp_path / "stubs", library, SYSTEM, objects={"Provider_GetHost"})
        found[name] = json.loads(loaded(library, tmp_path / "stubs"))
        told = run(llvm("llvm-readelf"), "-W", "--segments", "--sections", "--dyn-relocations", library)
        assert "warning" not in told
    assert len(found["new"]) == 95
    assert found["new"] == [
        {name: digest for name, digest in one.items() if "hipv4" not in name or name.endswith("--gfx1030")}
        for one in found["old"]
    ]


@pytest.mark.nightly
def test_every_library_of_bitsandbytes_keeps_the_code_of_one_target_compressed_as_it_was(
    tmp_path: Path,
) -> None:
    wheel = real_wheel("bitsandbytes", "0.50.2")
    report = slim(wheel, ["gfx1151"], tmp_path, epoch=0)
    before = code_objects(wheel, hashes=True)
    after = code_objects(report.out, hashes=True)
    assert after == [one for one in before if one.target == "gfx1151"]
    assert {one.path for one in report.changed} == {one.path for one in before}
    with zipfile.ZipFile(report.out) as archive:
        for one in report.changed:
            library = Path(archive.extract(one.path, tmp_path / "new"))
            stubs = tmp_path / f"stubs-{library.name}"
            stub_libraries(stubs, library, SYSTEM)
            registered = json.loads(loaded(library, stubs))
            assert {bundle["kind"] for bundle in registered} == {"CCOB"}
            # LLVM's own word on what the compressed bundles hold
            told = run(llvm("llvm-objdump"), "--offloading", library, cwd=tmp_path)
            assert {line.rpartition("--")[2] for line in _ids(told)} == {"gfx1151"}


def _ids(told: str) -> Iterator[str]:
    return (word for word in told.split() if "amdhsa--" in word)


VERSION = """
import ctypes, sys
library, version = ctypes.CDLL(sys.argv[1]), ctypes.c_int()
assert library.rocrand_get_version(ctypes.byref(version)) == 0
print(version.value)
"""


def test_debians_librocrand_loads_with_the_real_runtime_and_tells_its_version(tmp_path: Path) -> None:
    for package in ("libamdhip64-5", "libamd-comgr2", "libhsa-runtime64-1", "libhsakmt1"):
        run("dpkg-deb", "-x", debian_package(package, "bookworm"), tmp_path / "runtime")
    run("dpkg-deb", "-x", debian_package("librocrand1", "bookworm"), tmp_path / "old")
    report = slim(tmp_path / "old", ["gfx1030"], tmp_path / "new", epoch=0)
    assert report.after < 0.6 * report.before
    folder = "usr/lib/x86_64-linux-gnu"
    versions = [
        loaded(tmp_path / name / folder / "librocrand.so.1", tmp_path / "runtime" / folder, script=VERSION)
        for name in ("old", "new")
    ]
    assert versions[0] == versions[1] != ""


@pytest.mark.nightly
def test_debians_librocblas_keeps_one_gpus_code_in_the_library_and_beside_it(tmp_path: Path) -> None:
    tree = tmp_path / "old"
    tree.mkdir()
    # two of its ten GPUs' kernels, of 2 GB in all
    wanted = ("*/librocblas.so*", "*/library/TensileLibrary.dat", "*/library/*gfx803*", "*/library/*gfx1100*")
    command = 'dpkg-deb --fsys-tarfile "$1" | tar -xC "$2" --wildcards "$3" "$4" "$5" "$6"'
    package = debian_package("librocblas0", "trixie")
    run("sh", "-euc", command, "sh", package, tree, *wanted)
    report = slim(tree, ["gfx1100"], tmp_path / "new", epoch=0)
    folder = "usr/lib/x86_64-linux-gnu"
    kept = {path.name for path in report.out.glob(f"{folder}/rocblas/*/library/*")}
    assert kept == {"TensileLibrary.dat", "TensileLibrary_gfx1100.co", "Kernels.so-000-gfx1100.hsaco"}
    library = Path(folder, "librocblas.so.0.1")
    (changed,) = (one for one in report.changed if one.path == str(library))
    assert changed.after <= 1.02 * (changed.before - sum(changed.went.values()))
    # it wants a newer libc than this system may have, so that it is read and not loaded
    ((_, _, found),) = fat_binaries(report.out / library)
    assert [one.bundle for one in found.wrappers] == [one.offset for one in found.bundles]
    assert {one.target for bundle in found.bundles for one in bundle.code} == {"gfx1100"}
    old, new = (
        [code for _, code in read_code(one / library, lambda code: code.target == "gfx1100")]
        for one in (tree, report.out)
    )
    assert old == new != []
