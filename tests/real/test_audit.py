"""Code that others compiled: kernels of onnxruntime-rocm, judged for other GPUs than theirs."""

from __future__ import annotations

import re
import subprocess
from itertools import islice
from pathlib import Path

import pytest
from tests.real.real_wheels import real_wheel

from rocwheel.wheels.audit.judge import AuditVerdict
from rocwheel.wheels.audit.run import AuditReport, audit_override
from rocwheel.wheels.devicecode.code_objects import read_code
from rocwheel.wheels.devicecode.kernels import kernels
from rocwheel_samples.gpu_assembly import llvm_tool

pytestmark = pytest.mark.real

OBJECTS = 12
LARGEST = 400_000
"""Some code objects of the 95, and none that takes long."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Code objects for gfx1100, out of the wheel."""
    llvm_tool("llvm-objdump")
    wheel = real_wheel("onnxruntime-rocm", "1.22.2.post3")
    found = tmp_path_factory.mktemp("code")
    wanted = read_code(wheel, lambda one: one.target == "gfx1100" and one.size < LARGEST)
    for one, code in islice(wanted, OBJECTS):
        (found / f"{one.index:03}.co").write_bytes(code)
    return found


def shares(report: AuditReport) -> tuple[int, int]:
    """Instructions of all kernels, and those that decode otherwise."""
    every = [kernel for one in report.objects for kernel in one.kernels]
    return sum(one.instructions for one in every), sum(one.differing for one in every)


def test_kernels_are_those_that_llvm_tells(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        told = subprocess.run(
            [llvm_tool("llvm-readelf"), "--notes", path], capture_output=True, text=True, check=True
        ).stdout
        found = kernels(path.read_bytes())
        for key, values in {
            "symbol": [one.symbol for one in found],
            "vgpr_count": [str(one.vgprs) for one in found],
            "sgpr_count": [str(one.sgprs) for one in found],
            "group_segment_fixed_size": [str(one.lds) for one in found],
            "private_segment_fixed_size": [str(one.scratch) for one in found],
            "wavefront_size": [str(one.wave) for one in found],
        }.items():
            assert re.findall(rf"\.{key}: +'?([^\s']+)", told) == values
        assert all(one.descriptor is not None and not one.contradictions for one in found)


@pytest.mark.parametrize(
    "on",
    [
        "gfx1151",
        *(
            pytest.param(gpu, marks=pytest.mark.nightly)
            for gpu in ("gfx1102", "gfx1103", "gfx1150", "gfx1152")
        ),
    ],
)
def test_code_for_gfx1100_decodes_the_same_on_the_rest_of_its_generation(folder: Path, on: str) -> None:
    report = audit_override(folder, "gfx1100", on)
    instructions, differing = shares(report)
    assert instructions > 50_000
    assert differing == 0
    assert len(report.objects) == OBJECTS
    assert {reason.kind for _, _, reason in report.reasons} <= {"resources"}


def test_code_for_gfx1100_is_not_valid_on_the_next_generation(folder: Path) -> None:
    report = audit_override(folder, "gfx1100", "gfx1201")
    instructions, differing = shares(report)
    assert instructions // 10 < differing < instructions // 2
    assert report.counts[AuditVerdict.SAFE] == 0
