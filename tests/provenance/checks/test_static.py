"""Checks that read an artifact and run nothing of it."""

from __future__ import annotations

import zipfile
from pathlib import Path

from rocwheel_samples.fatbin import write_wheel
from rocwheel_samples.gpu_assembly import assemble, kernel_source
from rocwheel_samples.kpack import code_for, kpack, kpacked_elf
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.model import Check
from rocwright.provenance.checks.static import is_static, look_at, published

CHECK = Check(name="resources", kind="resources")


def code(folder: Path, **told: int) -> Path:
    source = kernel_source(descriptor=told, metadata={"max_flat_workgroup_size": 64})
    return assemble(folder, source, "gfx803")


def test_kernels_that_fit_their_gpu_pass_with_what_the_largest_takes(tmp_path: Path) -> None:
    (found,) = look_at(CHECK, code(tmp_path, next_free_vgpr=99), ["gfx803"], builtin_catalog())
    assert is_static(CHECK)
    assert (found.name, found.ok) == ("resources on gfx803", True)
    assert "1 kernel, 0 spill; most: vector registers 99 of 256" in found.detail


def test_a_kernel_that_cannot_be_launched_on_its_gpu_fails(tmp_path: Path) -> None:
    (found,) = look_at(CHECK, code(tmp_path, group_segment_fixed_size=99_000), ["gfx803"], builtin_catalog())
    assert not found.ok
    assert found.detail == "add: a work-group takes 99,000 bytes of LDS; gfx803 has 65,536"


def test_a_gpu_without_a_kernel_fails(tmp_path: Path) -> None:
    found = look_at(CHECK, code(tmp_path), ["gfx803", "gfx90a:xnack-"], builtin_catalog())
    assert [(one.name, one.ok) for one in found] == [
        ("resources on gfx803", True),
        ("resources on gfx90a", False),
    ]


def test_published_wheels_need_the_wheel_of_device_code_of_each_gpu(tmp_path: Path) -> None:
    check = Check(name="check-gpu", kind="check-gpu", arguments=("amd-torch-device-{target}",))
    host, device, hollow = (
        tmp_path / name
        for name in (
            "torch-2.13.0-py3-none-any.whl",
            "amd_torch_device_gfx1151-2.13.0-py3-none-any.whl",
            "amd_torch_device_gfx803-2.13.0-py3-none-any.whl",
        )
    )
    write_wheel(host, {"torch/lib/x.so": kpacked_elf()})
    write_wheel(device, {"torch/.kpack/x_gfx1151.kpack": kpack(code_for("gfx1151", "lib/x.so#0"))})
    write_wheel(hollow, {"torch/a.txt": b""})
    paths = [host, device, hollow]
    (empty,) = published(check, paths, ["gfx803"], builtin_catalog())
    assert "amd_torch_device_gfx803-2.13.0-py3-none-any.whl is there, and holds no GPU code" in empty.detail
    assert not empty.ok
    has, lacks = published(check, paths, ["gfx1151", "gfx1100"], builtin_catalog())
    assert is_static(check)
    assert (has.name, has.ok) == ("runs on gfx1151", True)
    assert has.detail == "torch/lib/x.so: 1 fat binary with code for gfx1151"
    assert (lacks.name, lacks.ok) == ("runs on gfx1100", False)
    assert "no wheel amd-torch-device-gfx1100" in lacks.detail


def test_published_wheels_without_any_gpu_code_do_not_run_on_a_gpu(tmp_path: Path) -> None:
    path = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/__init__.py", "")
    (found,) = published(Check(name="c", kind="check-gpu"), [path], ["gfx1100"], builtin_catalog())
    assert (found.ok, found.detail) == (False, "none of the wheels holds GPU code")


def test_code_in_published_wheels_must_run_on_the_gpu(tmp_path: Path) -> None:
    path = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(code(tmp_path), "x/kernels.co")
    found = published(Check(name="c", kind="check-gpu"), [path], ["gfx803", "gfx1100"], builtin_catalog())
    assert [one.ok for one in found] == [True, False]
    assert "without code for gfx1100" in found[1].detail
