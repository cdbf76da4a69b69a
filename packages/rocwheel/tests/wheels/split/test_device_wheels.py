"""A wheel split into one of libraries and one of kpack archives for each GPU."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from rocbase.errors import CheckError
from rocwheel.cli import cli
from rocwheel.wheels.choose import Target
from rocwheel.wheels.devicecode.code_objects import code_objects, read_code
from rocwheel.wheels.devicecode.fatbin import fat_binary
from rocwheel.wheels.inspection import inspect_together
from rocwheel.wheels.metadata import Headers
from rocwheel.wheels.runs_on import RunsOn, runs_together
from rocwheel.wheels.source import FileSource
from rocwheel.wheels.split.device_wheels import split_device_wheels
from rocwheel_samples.fatbin import compressed_bundle, entry_id, fatbin, gpu_elf, host_elf, plain_bundle
from rocwheel_samples.hip_compiler import compile_library, llvm, run
from rocwheel_samples.loading import embed
from rocwheel_samples.wheel_making import FILES, METADATA, small_wheel

EPOCH = 1_700_000_000
TARGETS = ["gfx1030", "gfx1100", "gfx90a:xnack-", "gfx90a:xnack+"]
NAMES = ["gfx1030", "gfx1100", "gfx90a"]
UNITS = (("add",), ("scale", "wave"), ("last",))

LOADER = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
library.registered_bundle.restype = ctypes.c_void_p
library.registered_wrapper.restype = ctypes.c_void_p
print(json.dumps([
    [ctypes.string_at(library.registered_wrapper(number), 24).hex(),
     ctypes.string_at(library.registered_bundle(number), int(sys.argv[2])).hex()]
    for number in range(library.registered_count())
]))
"""


@pytest.fixture(scope="module")
def fat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with a library of plain bundles, one of compressed ones, and a file for one GPU."""
    folder = tmp_path_factory.mktemp("fat")
    plain = compile_library(folder / "1", TARGETS, units=UNITS)
    packed = compile_library(folder / "2", TARGETS, units=UNITS, compress=True, name="libpacked.so")
    files = {
        **FILES,
        "small-1.0.dist-info/METADATA": METADATA.replace(b"\n\n", b"\nRequires-Dist: other\n\n", 1),
        "small/lib/libkernels.so": plain.read_bytes(),
        "small/libpacked.so": packed.read_bytes(),
        "small/library/TensileLibrary_gfx1100.co": b"code",
    }
    return small_wheel(folder, files)


@pytest.fixture(scope="module")
def pieces(fat: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = split_device_wheels(fat, tmp_path_factory.mktemp("pieces"), epoch=EPOCH)
    assert not found.left
    return {piece.target: piece.path for piece in found.pieces}


def unpacked(folder: Path, *wheels: Path) -> Path:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return folder


def code_of(path: Path) -> set[tuple[str, str]]:
    return {(one.target_id, hashlib.sha256(code).hexdigest()) for one, code in read_code(path)}


def test_all_code_lies_in_the_archives_and_none_in_the_libraries(
    fat: Path, pieces: dict[str, Path], tmp_path: Path
) -> None:
    assert list(pieces) == ["host", *NAMES]
    assert code_objects(pieces["host"]) == []
    assert code_of(unpacked(tmp_path, *pieces.values())) == code_of(fat)
    with zipfile.ZipFile(pieces["gfx90a"]) as archive:
        names = [name for name in archive.namelist() if name.endswith(".kpack")]
    assert names == ["small/.kpack/small_gfx90a:xnack+.kpack", "small/.kpack/small_gfx90a:xnack-.kpack"]
    with zipfile.ZipFile(pieces["gfx1100"]) as archive:
        assert archive.read("small/library/TensileLibrary_gfx1100.co") == b"code"


def test_each_wrapper_finds_its_own_code(fat: Path, pieces: dict[str, Path], tmp_path: Path) -> None:
    whole = {
        (one.path, one.index, one.target_id): code for one, code in read_code(fat) if one.index is not None
    }
    for one, code in read_code(unpacked(tmp_path, *pieces.values())):
        if one.library:
            name, _, number = one.library.partition("#")
            assert whole[f"small/{name}", int(number), one.target_id] == code


def test_together_they_run_where_the_wheel_did(pieces: dict[str, Path]) -> None:
    host = pieces["host"]
    for target in NAMES:
        judged = runs_together([host, pieces[target]], Target(target))[0].judged
        assert [one.verdict for one in judged] == [RunsOn.NATIVE, RunsOn.NATIVE], target
    judged = runs_together([host], Target("gfx1100"))[0].judged
    assert {one.verdict for one in judged} == {RunsOn.UNKNOWN}
    assert "small-device-gfx1100==1.0 has those for gfx1100" in judged[0].reason


def test_the_host_wheel_names_the_device_wheels_and_they_it(pieces: dict[str, Path]) -> None:
    with zipfile.ZipFile(pieces["host"]) as archive:
        headers = Headers(archive.read("small-1.0.dist-info/METADATA"))
    assert headers.all("Provides-Extra") == [f"device-{name}" for name in NAMES]
    assert headers.all("Requires-Dist") == [
        "other",
        *(f'small-device-{name} == 1.0; extra == "device-{name}"' for name in NAMES),
    ]
    with zipfile.ZipFile(pieces["gfx1100"]) as archive:
        headers = Headers(archive.read("small_device_gfx1100-1.0.dist-info/METADATA"))
    assert headers.all("Requires-Dist") == ["small == 1.0"]


def test_the_same_wheel_gives_the_same_pieces(fat: Path, pieces: dict[str, Path], tmp_path: Path) -> None:
    again = split_device_wheels(fat, tmp_path, epoch=EPOCH)
    assert {one.target: one.path.read_bytes() for one in again.pieces} == {
        target: path.read_bytes() for target, path in pieces.items()
    }


@pytest.mark.parametrize("path", ["small/lib/libkernels.so", "small/libpacked.so"])
def test_a_library_hands_its_reference_to_the_runtime(
    pieces: dict[str, Path], tmp_path: Path, path: str
) -> None:
    library = unpacked(tmp_path, pieces["host"]) / path
    with FileSource(library) as source:
        found = fat_binary(source)
    assert found is not None and found.reference is not None and not found.has_code
    assert found.reference.name == path.removeprefix("small/")
    done = subprocess.run(
        [sys.executable, "-c", LOADER, str(library), "200"], capture_output=True, text=True, check=True
    )
    seen = [(bytes.fromhex(wrapper), bytes.fromhex(told)) for wrapper, told in json.loads(done.stdout)]
    assert len(seen) == len(UNITS)
    assert [wrapper[:4] for wrapper, _ in seen] == [b"HIPK"] * len(UNITS)
    assert {wrapper[16] for wrapper, _ in seen} == set(range(len(UNITS)))
    assert all(b"kernel_name" in told and b".kpack/small_@GFXARCH@.kpack" in told for _, told in seen)


def test_llvm_finds_the_reference_and_nothing_damaged(pieces: dict[str, Path], tmp_path: Path) -> None:
    library = unpacked(tmp_path, pieces["host"]) / "small/lib/libkernels.so"
    told = run(llvm("llvm-readelf"), "--sections", "--segments", library)
    assert ".rocm_kpack_ref" in told and "warning" not in told
    assert ".hip_fatbin" not in told
    assert library.stat().st_size < 40_000


def test_bundles_that_no_wrapper_leads_to_stay_with_a_word(tmp_path: Path) -> None:
    bundle = plain_bundle([(entry_id("gfx1100"), gpu_elf(0x41))])
    library = embed(tmp_path, [bundle, bundle], unreached=[1])
    lone = {"small/k.hsaco": gpu_elf(0x41)}
    wheel = small_wheel(tmp_path, {**FILES, "small/lib.so": library.read_bytes(), **lone})
    found = split_device_wheels(wheel, tmp_path / "out", epoch=EPOCH)
    assert found.left == {"small/lib.so": "it has bundles to which no wrapper leads"}
    (library_left,) = [
        one for one in inspect_together([found.pieces[0].path]).libraries if one.kind == "library"
    ]
    assert library_left.unreached == 1


def test_what_has_no_code_and_what_is_split_already_is_told(tmp_path: Path, pieces: dict[str, Path]) -> None:
    with pytest.raises(CheckError, match="has no GPU code that can be split off"):
        split_device_wheels(small_wheel(tmp_path), tmp_path / "out", epoch=EPOCH)
    with pytest.raises(CheckError, match="has no GPU code that can be split off"):
        split_device_wheels(pieces["host"], tmp_path / "out", epoch=EPOCH)
    with pytest.raises(CheckError, match="has no GPU code that can be split off") as caught:
        split_device_wheels(pieces["gfx1100"], tmp_path / "out", epoch=EPOCH)
    assert caught.value.cause == "it is a device wheel already"
    assert not [*(tmp_path / "out").iterdir()]
    with pytest.raises(CheckError, match="would take the place of"):
        split_device_wheels(pieces["host"], pieces["host"].parent, epoch=EPOCH)


def test_the_command_writes_them(tmp_path: Path) -> None:
    packed = compressed_bundle(plain_bundle([(entry_id("gfx1100"), gpu_elf(0x41))]), version=2, method=1)
    files = {**FILES, "small/lib.so": host_elf(fatbin([packed])), "small/k.co": gpu_elf(0x41)}
    wheel = small_wheel(tmp_path, files)
    done = CliRunner().invoke(cli, ["split", "--kpack", str(wheel), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "its code stays in the host wheel" in done.output
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == [
        "small-1.0-py3-none-any.whl",
        "small_device_gfx1100-1.0-py3-none-any.whl",
    ]
