from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode.kernels import kernels
from rocwheel_samples.code_object import code_object
from rocwheel_samples.fatbin import gpu_elf
from rocwheel_samples.gpu_assembly import assemble, damages, kernel_source, llvm_tool


def test_a_kernels_registers_memory_and_arguments_are_told(tmp_path: Path) -> None:
    source = kernel_source(
        "scale",
        descriptor={
            "next_free_vgpr": 37,
            "wavefront_size32": 1,
            "group_segment_fixed_size": 4096,
            "private_segment_fixed_size": 64,
            "uses_dynamic_stack": 1,
        },
        metadata={"vgpr_spill_count": 3, "sgpr_spill_count": 2, "uses_dynamic_stack": "true"},
    )
    (found,) = kernels(assemble(tmp_path, source, "gfx1100").read_bytes())
    assert (found.name, found.symbol) == ("scale", "scale.kd")
    assert (found.vgprs, found.agprs, found.sgprs) == (37, 0, 16)
    assert (found.vgpr_spills, found.sgpr_spills) == (3, 2)
    assert (found.lds, found.scratch, found.dynamic_stack) == (4096, 64, True)
    assert (found.kernargs, found.wave, found.workgroup) == (16, 32, 1024)
    assert [(one.offset, one.size, one.kind) for one in found.arguments] == [(0, 8, "global_buffer")]
    assert found.contradictions == ()


def test_the_descriptor_is_read_beside_the_metadata(tmp_path: Path) -> None:
    source = kernel_source(
        body="s_nop 0\n" * 64 + "s_endpgm", descriptor={"next_free_vgpr": 100, "wavefront_size32": 1}
    )
    (found,) = kernels(assemble(tmp_path, source, "gfx1100").read_bytes())
    told = found.descriptor
    assert told is not None
    assert (told.wave32, told.dynamic_stack, told.scratch_enabled) == (True, False, False)
    # waves of 32 are told in granules of 8 registers (AMDGPUUsage, GRANULATED_WORKITEM_VGPR_COUNT)
    assert told.vgpr_granules == 100 // 8 + 1
    assert told.entry % 256 == 0


def test_accumulation_registers_are_counted_apart(tmp_path: Path) -> None:
    source = kernel_source(descriptor={"next_free_vgpr": 64, "accum_offset": 32}, metadata={"agpr_count": 32})
    (found,) = kernels(assemble(tmp_path, source, "gfx90a").read_bytes())
    assert (found.vgprs, found.agprs, found.wave) == (64, 32, 64)
    assert found.descriptor is not None
    assert (found.descriptor.rsrc3 & 0x3F) == 32 // 4 - 1


@pytest.mark.parametrize("version", [4, 5, 6])
def test_every_code_object_version_is_read(tmp_path: Path, version: int) -> None:
    flag = f"-mcode-object-version={version}"
    (found,) = kernels(assemble(tmp_path, kernel_source("k"), "gfx906", flag).read_bytes())
    assert (found.name, found.descriptor is not None) == ("k", True)


def test_a_file_that_is_not_linked_has_metadata_and_no_descriptor_that_could_be_wrong(tmp_path: Path) -> None:
    (found,) = kernels(assemble(tmp_path, kernel_source("k"), "gfx906", "-c").read_bytes())
    assert found.vgprs == 8
    assert found.descriptor is None


def test_a_descriptor_that_contradicts_the_metadata_is_told(tmp_path: Path) -> None:
    source = kernel_source(
        descriptor={"group_segment_fixed_size": 128}, metadata={"group_segment_fixed_size": 64}
    )
    (found,) = kernels(assemble(tmp_path, source, "gfx906").read_bytes())
    assert found.contradictions == ("LDS: 64 in the metadata, 128 in the descriptor",)


def test_a_descriptor_may_leave_the_size_of_arguments_open(tmp_path: Path) -> None:
    source = kernel_source(descriptor={"kernarg_size": 0}, metadata={"kernarg_segment_size": 176})
    (found,) = kernels(assemble(tmp_path, source, "gfx906").read_bytes())
    assert (found.kernargs, found.contradictions) == (176, ())


def test_a_code_object_written_by_hand_is_read_as_llvm_reads_it(tmp_path: Path) -> None:
    (found,) = kernels(code_object())
    assert (found.name, found.vgprs, found.wave, found.contradictions) == ("k", 3, 32, ())
    path = tmp_path / "k.co"
    path.write_bytes(code_object())
    tool = llvm_tool("llvm-objdump")
    listed = subprocess.run([tool, "-d", "--mcpu=gfx1100", path], capture_output=True, text=True).stdout
    assert found.descriptor is not None
    assert f"{found.descriptor.entry:016x} <k>:\n\ts_endpgm" in listed


def test_code_without_metadata_has_no_kernels(tmp_path: Path) -> None:
    assert kernels(assemble(tmp_path, ".text\ns_endpgm\n", "gfx906").read_bytes()) == []


def test_a_kernel_without_a_name_is_refused_with_the_place(tmp_path: Path) -> None:
    code = assemble(tmp_path, kernel_source(), "gfx906").read_bytes()
    with pytest.raises(CheckError, match=r"metadata: amdhsa\.kernels\.0\.\.name"):
        kernels(code.replace(b"\xa5.name", b"\xa5.nama"))


def test_nests_and_lengths_that_lie_are_refused(tmp_path: Path) -> None:
    code = assemble(tmp_path, kernel_source(), "gfx906").read_bytes()
    at = code.index(b"\xaeamdhsa.kernels") - 1
    for lie in (b"\xdd\xff\xff\xff\xff" * 40, b"\x91" * 200, b"\xdf\xff\xff\xff\xff" * 40):
        with pytest.raises(CheckError, match="metadata"):
            kernels(code[:at] + lie + code[at + len(lie) :])


def test_a_file_without_sections_is_refused_and_not_empty() -> None:
    with pytest.raises(CheckError, match="no section table"):
        kernels(gpu_elf(0x2A))


def test_damage_anywhere_is_a_check_error_or_harmless(tmp_path: Path) -> None:
    code = assemble(tmp_path, kernel_source(), "gfx1100").read_bytes()
    assert len(kernels(code)) == 1
    refused = 0
    for damaged in damages(code):
        with contextlib.suppress(CheckError):
            kernels(damaged)
            continue
        refused += 1
    assert refused > 100
