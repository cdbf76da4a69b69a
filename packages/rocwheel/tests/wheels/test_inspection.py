from __future__ import annotations

from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwheel.wheels.environment import inspect_environment
from rocwheel.wheels.inspection import inspect
from rocwheel_samples.fatbin import (
    compressed_bundle,
    entry_id,
    fatbin,
    gpu_elf,
    host_elf,
    plain_bundle,
    write_wheel,
)

GENERIC = 0x54 | 1 << 24


def library(*targets: tuple[str, int], packed: bool = False) -> bytes:
    code = [(entry_id(name), gpu_elf(flags, abi=4 if flags >> 24 else 2)) for name, flags in targets]
    bundle = plain_bundle(code)
    return host_elf(fatbin([compressed_bundle(bundle, version=3, method=1) if packed else bundle]))


def test_each_file_is_told_with_its_targets_and_the_form_of_its_bundles(tmp_path: Path) -> None:
    wheel = write_wheel(
        tmp_path / "x-1-py3-none-any.whl",
        {
            "x/b.so": library(("gfx1030", 0x36), ("gfx90a:xnack-", 0x23F), packed=True),
            "x/a.so": library(("gfx11-generic", GENERIC)),
            "x/k.hsaco": gpu_elf(0x4A),
        },
    )
    found = inspect(wheel)
    assert [(one.path, one.kind) for one in found.libraries] == [
        ("x/a.so", "library"),
        ("x/b.so", "library"),
        ("x/k.hsaco", "code object"),
    ]
    plain, packed, lone = found.libraries
    assert [one.target_id for one in packed.targets] == ["gfx90a:xnack-", "gfx1030"]
    ((form,), (other,)) = plain.bundles, packed.bundles
    assert (form.compression, form.version, form.count) == ("", 0, 1)
    assert (other.compression, other.version, other.count) == ("zstd", 3, 1)
    assert other.size < other.unpacked_size
    assert (lone.bundles, [one.size for one in lone.targets]) == ((), [68])
    assert {one.target_id: one.count for one in found.totals} == {
        "gfx90a:xnack-": 1,
        "gfx1030": 1,
        "gfx1151": 1,
        "gfx11-generic": 1,
    }


def test_a_generic_target_says_what_it_covers(tmp_path: Path) -> None:
    (tmp_path / "a.so").write_bytes(library(("gfx11-generic", GENERIC), ("gfx1030", 0x36)))
    generic, plain = sorted(inspect(tmp_path).totals, key=lambda one: not one.covers)
    assert "gfx1151" in generic.covers
    assert plain.covers == ()
    (found,) = inspect(tmp_path).libraries
    assert [(one.generic_version, one.abi) for one in found.code] == [(1, 6), (0, 4)]


def test_the_files_of_an_environment_are_told_by_distribution(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    info = packages / "torch-2.8.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.8.0\n")
    (info / "RECORD").write_text("torch/lib/a.so,,\n")
    for name in ("torch/lib/a.so", "stray.so"):
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_bytes(library(("gfx1030", 0x36)))
    (tmp_path / "lib64").symlink_to("lib")
    found = [(one.path, one.distribution) for one in inspect_environment(tmp_path).libraries]
    assert found == [
        ("lib/python3.11/site-packages/stray.so", ""),
        ("lib/python3.11/site-packages/torch/lib/a.so", "torch 2.8.0"),
    ]
    assert len(inspect_environment(packages).libraries) == 2


def test_what_is_no_environment_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a Python environment"):
        inspect_environment(tmp_path)


def test_files_that_libraries_load_by_name_are_listed_by_folder_and_target(tmp_path: Path) -> None:
    wheel = write_wheel(
        tmp_path / "x.whl",
        {
            "x/rocblas/library/TensileLibrary_lazy_gfx1100.dat": b"12345",
            "x/rocblas/library/TensileLibrary_Type_HH_gfx1100.dat": b"123",
            "x/miopen/db/gfx90a68.kdb": b"1",
            "x/aotriton.images/amd-gfx11xx/flash.aks2": b"12",
            "x/gfx1100.py": b"no kernel",
            "x/comgr/llvmcache-01AB": bytes([68, *bytes(7)]) + gpu_elf(0x4A) + bytes(8),
            "x/comgr/llvmcache-01AC": b"BC\xc0\xde",
        },
    )
    assert [(one.folder, one.kind, one.target, one.count, one.size) for one in inspect(wheel).loose] == [
        ("x/aotriton.images/amd-gfx11xx", "AOTriton", "gfx11xx", 1, 2),
        ("x/comgr", "comgr cache", "gfx1151", 1, 84),
        ("x/miopen/db", "MIOpen", "gfx90a", 1, 1),
        ("x/rocblas/library", "rocBLAS", "gfx1100", 2, 8),
    ]
