"""Debian's own ROCm put into a wheel, which then compiles for a GPU in a venv with no ROCm around."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real.real_wheels import debian_package, real_wheel

from rocbase.files.atomic import sha256_file
from rocwheel.wheels.repair import Made, Request, bundle, check_traced, plan_for
from rocwheel_samples.fake_rocm import compile_library, make_wheel
from rocwright.sources.bases.roots import remove_tree

pytestmark = pytest.mark.real

_HASH = re.compile(r"needy\.libs/.*-([0-9a-f]{8})\.")
"""A part of a library's sha256 in the name that auditwheel gives it."""

CODE = """
int hipGetDeviceCount(int *);
int hipRuntimeGetVersion(int *);
int rocrand_get_version(int *);
int hip_version(void) { int value = 0; hipRuntimeGetVersion(&value); return value; }
int rand_version(void) { int value = 0; rocrand_get_version(&value); return value; }
"""

COMPILE = """
import ctypes, json, sys
native = ctypes.CDLL(f"{SITE}/needy/_native.so")
names = {line.split()[-1] for line in open("/proc/self/maps") if "libamdhip64" in line}
hip = ctypes.CDLL(names.pop())
source = b'extern "C" __global__ void add(float *a, float *b) { a[threadIdx.x] += b[threadIdx.x]; }'
program, size = ctypes.c_void_p(), ctypes.c_size_t()
options = (ctypes.c_char_p * 1)(b"--gpu-architecture=gfx1030")
assert hip.hiprtcCreateProgram(ctypes.byref(program), source, b"add.hip", 0, None, None) == 0
assert hip.hiprtcCompileProgram(program, 1, options) == 0
assert hip.hiprtcGetCodeSize(program, ctypes.byref(size)) == 0
code = ctypes.create_string_buffer(size.value)
assert hip.hiprtcGetCode(program, code) == 0
assert code.raw[:4] == b"\\x7fELF" and code.raw[18:20] == (224).to_bytes(2, "little")
machine = int.from_bytes(code.raw[48:52], "little") & 0xFF
loaded = sorted({line.split()[-1] for line in open("/proc/self/maps") if ".so" in line})
print(json.dumps({"rand": native.rand_version(), "machine": machine, "loaded": loaded}))
"""


SUITE = "bookworm"
"""Of an old glibc, so that its libraries load on any machine that runs the tests."""

ROCM = ("librocrand1", "libamdhip64-5", "libamd-comgr2", "libhsa-runtime64-1", "libhsakmt1", "libllvm15")
OTHERS = (
    "libbsd0",
    "libdrm-amdgpu1",
    "libdrm-common",
    "libdrm2",
    "libedit2",
    "libelf1",
    "libffi8",
    "libicu72",
    "liblzma5",
    "libmd0",
    "libnuma1",
    "libtinfo6",
    "libxml2",
    "libz3-4",
)


@pytest.fixture(scope="module")
def rocm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """rocRAND and all that it needs, as Debian packages them, with the lists that dpkg keeps."""
    root = tmp_path_factory.mktemp("rocm")
    lists = root / "var" / "lib" / "dpkg" / "info"
    lists.mkdir(parents=True)
    for name in (*ROCM, *OTHERS):
        words: list[str | Path] = ["dpkg-deb", "-X", debian_package(name, SUITE), root]
        told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        (lists / f"{name}.list").write_text(told.replace("./", "/"))
    yield root
    remove_tree(root)


@pytest.fixture(scope="module")
def wheel(rocm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    lib = next(rocm.glob("usr/lib/*-linux-gnu"))
    hip = next(lib.glob("libamdhip64.so.?"))
    library = compile_library(
        folder / "_native.so",
        CODE,
        needs=(lib / "librocrand.so.1", hip),
        flags=("-Wl,--allow-shlib-undefined", "-Wl,--no-as-needed"),
    )
    return make_wheel(folder, rocm, library=library)


@pytest.fixture(scope="module")
def made(rocm: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return bundle(wheel, Request(roots=(rocm,), system=False), tmp_path_factory.mktemp("out"), epoch=0)


def test_it_compiles_for_a_gpu_in_a_fresh_venv_with_no_rocm_around(
    rocm: Path, made: Made, tmp_path: Path
) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    pip: list[str | Path] = [
        venv / "bin/python",
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        made.path,
    ]
    subprocess.run(pip, check=True)
    site = next(venv.glob("lib/python*/site-packages"))
    program = f"SITE = {str(site)!r}\n{COMPILE}"
    away = rocm.rename(rocm.with_name("away"))
    try:
        done = subprocess.run(
            [venv / "bin/python", "-I", "-c", program], env={}, capture_output=True, text=True, check=False
        )
    finally:
        away.rename(rocm)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["machine"] == 0x36
    assert told["rand"] > 200000
    ours = [one for one in told["loaded"] if one.startswith(str(site))]
    assert any("libamd_comgr.so" in one for one in ours)
    rocms = [one for one in told["loaded"] if re.search(r"hip|hsa|comgr|LLVM|rocrand", one)]
    assert set(rocms) <= set(ours)


def test_traced_it_loads_what_the_catalog_says_and_nothing_from_outside(
    rocm: Path, made: Made, tmp_path: Path
) -> None:
    program = tmp_path / "compile.py"
    program.write_text(COMPILE)
    traced = check_traced(made, Request(roots=(rocm,), system=False), [program])
    assert any("libamd_comgr.so" in one for one in traced.loaded)
    brought = {one.place for one in made.plan.libraries}
    assert brought == {one for one in traced.loaded if one in brought}


def test_each_librarys_licence_is_carried_along(made: Made) -> None:
    with zipfile.ZipFile(made.path) as archive:
        names = [name for name in archive.namelist() if "/licenses/" in name]
    for one in made.plan.libraries:
        assert any(f"/{one.soname}/" in name for name in names), one.name


def test_auditwheel_brings_the_same_where_nothing_is_opened_by_name(
    rocm: Path, wheel: Path, tmp_path: Path
) -> None:
    request = Request(roots=(rocm,), system=False, exclude=("libamd_comgr.so*",))
    ours = {sha256_file(one.source)[:8] for one in plan_for(wheel, request).libraries}
    folders = (*rocm.glob("usr/lib/*-linux-gnu"), *rocm.glob("lib/*-linux-gnu"))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(
        [sys.executable, "-m", "auditwheel", "repair", "-z", "1", "-w", tmp_path, wheel],
        env={**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, folders)), "PATH": path},
        check=True,
        capture_output=True,
    )
    (repaired,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(repaired) as archive:
        theirs = {match[1] for name in archive.namelist() if (match := _HASH.search(name))}
    assert ours == theirs


def test_onnxruntime_names_what_it_needs_of_rocm() -> None:
    plan = plan_for(real_wheel("onnxruntime-rocm", "1.22.2.post3"), Request(system=False))
    assert {one.name for one in plan.missing} == {
        "libMIOpen.so.1",
        "libamdhip64.so.7",
        "libhipblas.so.3",
        "libhipfft.so.0",
        "librocm_smi64.so.1",
        "libroctracer64.so.4",
    }
    assert {one.wanted_by for one in plan.missing} == {("onnxruntime/capi/libonnxruntime_providers_rocm.so",)}
    assert plan.home == "onnxruntime/_rocm"
