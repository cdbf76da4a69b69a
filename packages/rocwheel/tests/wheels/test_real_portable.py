"""Code for generic targets and SPIR-V, as clang makes both, read by rocwheel and by LLVM's own tools."""

from __future__ import annotations

import ctypes
from collections import Counter
from pathlib import Path

import pytest

from rocbase.files.atomic import sha256_file
from rocwheel.wheels.choose import ANY_GPU, Target
from rocwheel.wheels.devicecode.code_objects import code_objects, read_code
from rocwheel.wheels.inspection import inspect, kernels_of
from rocwheel.wheels.runs_on import RunsOn, runs_on, runs_together
from rocwheel.wheels.slim import slim
from rocwheel.wheels.split.device_wheels import HOST, split_device_wheels
from rocwheel_samples.hip_compiler import compile_library, llvm, run
from rocwheel_samples.wheel_making import FILES, small_wheel

pytestmark = pytest.mark.real

GENERIC = {
    "gfx9-generic": "gfx906",
    "gfx9-4-generic": "gfx942",
    "gfx10-1-generic": "gfx1010",
    "gfx10-3-generic": "gfx1030",
    "gfx11-generic": "gfx1151",
    "gfx12-generic": "gfx1201",
}
"""Each with a GPU that it covers, and for which there is no code of its own."""

TARGETS = (*GENERIC, "gfx1100", ANY_GPU)
UNITS = (("add", "scale"), ("other",))
SPIRV_MAGIC = 0x07230203


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_library(tmp_path_factory.mktemp("plain"), TARGETS, units=UNITS)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    return compile_library(folder, TARGETS, units=UNITS, compress=True)


def targets(path: Path) -> dict[str, int]:
    return Counter(one.target_id for one in code_objects(path))


@pytest.mark.parametrize("which", ["library", "packed"])
def test_every_target_is_listed(which: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(which)
    assert targets(path) == dict.fromkeys(TARGETS, len(UNITS))


def test_llvm_extracts_the_same_code_and_spir_v(library: Path, tmp_path: Path) -> None:
    named = tmp_path / library.name
    named.hardlink_to(library)
    run(llvm("llvm-objdump"), "--offloading", named.name, cwd=tmp_path)
    dumped = Counter(
        (path.name.partition("amdhsa--")[2], sha256_file(path))
        for path in tmp_path.glob(f"{named.name}.*amdhsa-*")
    )
    assert dumped == Counter((one.target_id, one.sha256) for one in code_objects(library, hashes=True))


def test_what_is_listed_as_spir_v_is_spir_v(packed: Path) -> None:
    found = [code for one, code in read_code(packed) if one.target == ANY_GPU]
    assert [int.from_bytes(code[:4], "little") for code in found] == [SPIRV_MAGIC] * len(UNITS)
    assert all(b"amdgcn" in code for code in found)


def test_what_a_generic_target_covers_is_told_and_kernels_are_read(packed: Path) -> None:
    told = {one.target_id: one.covers for one in inspect(packed).totals}
    assert all(gpu in told[name] for name, gpu in GENERIC.items())
    assert told[ANY_GPU] == told["gfx1100"] == ()
    read = [(one.target, kernel.name) for one, kernels in kernels_of(packed) for kernel in kernels]
    # SPIR-V has no kernels until the runtime compiles it
    assert sorted(read) == sorted(
        (target, name) for target in TARGETS if target != ANY_GPU for unit in UNITS for name in unit
    )


@pytest.mark.parametrize("which", ["library", "packed"])
def test_a_gpu_runs_by_its_own_code_then_by_generic_code_then_by_spir_v(
    which: str, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(which)
    assert [one.verdict for one in runs_on(path, Target("gfx1100"))] == [RunsOn.NATIVE]
    for name, gpu in GENERIC.items():
        (judged,) = runs_on(path, Target(gpu))
        assert (judged.verdict, name in judged.reason) == (RunsOn.GENERIC, True), gpu
    for gpu in ("gfx803", "gfx1250"):
        (judged,) = runs_on(path, Target(gpu))
        assert (judged.verdict, "SPIR-V" in judged.reason) == (RunsOn.COMPILED, True), gpu


@pytest.mark.parametrize(
    ("gpu", "kept"), [("gfx942", "gfx9-4-generic"), ("gfx1152", "gfx11-generic"), ("gfx803", ANY_GPU)]
)
def test_slim_keeps_what_the_gpu_runs_and_the_library_still_loads(
    packed: Path, tmp_path: Path, gpu: str, kept: str
) -> None:
    out = tmp_path / "small.so"
    slim(packed, [gpu], out, epoch=0)
    assert targets(out) == {kept: len(UNITS)}
    whole = {one.sha256 for one in code_objects(packed, hashes=True)}
    assert {one.sha256 for one in code_objects(out, hashes=True)} <= whole
    loaded = ctypes.CDLL(str(out))
    assert loaded.registered_count() == len(UNITS)


def test_device_wheels_of_generic_targets_and_of_spir_v_serve_the_gpus(packed: Path, tmp_path: Path) -> None:
    fat = small_wheel(tmp_path, {**FILES, "small/libkernels.so": packed.read_bytes()})
    found = split_device_wheels(fat, tmp_path / "pieces", epoch=0)
    pieces = {piece.target: piece.path for piece in found.pieces}
    assert set(pieces) == {HOST, *TARGETS}
    for target, gpu, verdict in (
        ("gfx9-4-generic", "gfx942", RunsOn.GENERIC),
        ("gfx12-generic", "gfx1201", RunsOn.GENERIC),
        (ANY_GPU, "gfx803", RunsOn.COMPILED),
    ):
        host, _ = runs_together([pieces[HOST], pieces[target]], Target(gpu))
        assert [one.verdict for one in host.judged] == [verdict]
        # alone, it names the wheel that is wanted
        (judged,) = runs_on(pieces[HOST], Target(gpu))
        assert judged.verdict is RunsOn.UNKNOWN
        assert f"small-device-{target}==1.0 has those for {target}" in judged.reason
