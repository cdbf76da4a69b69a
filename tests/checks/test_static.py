"""Checks that read an artifact and run nothing of it."""

from __future__ import annotations

from pathlib import Path

from rocwheel_samples.gpu_assembly import assemble, kernel_source
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.model import Check
from rocwright.checks.static import is_static, look_at

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
