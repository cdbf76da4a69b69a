"""Programs assembled for one GPU and judged for another, each with one thing right or wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from rocwheel.wheels.audit.judge import AuditVerdict, Judged, Question, judge
from rocwheel.wheels.audit.llvm import Disassembler, find_disassembler
from rocwheel.wheels.devicecode.code_object import CodeFile
from rocwheel_samples.gpu_assembly import assemble, damages, kernel_source, llvm_tool

END = "\ns_endpgm\n"
WAVE32 = {"wavefront_size32": 1}
FOR_16_SGPRS = {"user_sgpr_count": 16}

Judges = Callable[..., list[Judged]]


@pytest.fixture
def judged(tmp_path: Path) -> Judges:
    """Assemble for `code` and judge for `on`, both without or with modes: gfx90a:xnack-."""

    def run(source: str, code: str, on: str) -> list[Judged]:
        path = assemble(tmp_path, source, code)
        return judge_file(path, code, on)

    return run


@cache
def disassembler(*names: str) -> Disassembler:
    llvm_tool("llvm-objdump")
    return find_disassembler(names)


def judge_file(path: Path, code: str, on: str) -> list[Judged]:
    names = [code.partition(":")[0], on.partition(":")[0]]
    question = Question(code=names[0], on=names[1], modes=frozenset(on.split(":")[1:]))
    return judge(path.read_bytes(), question, disassembler(*names), path.name)


def kinds(one: Judged) -> set[str]:
    return {reason.kind for reason in one.reasons}


def test_code_that_means_the_same_is_safe(judged: Judges) -> None:
    body = "v_add_f32 v0, v1, v2\ns_waitcnt lgkmcnt(0)\nv_mad_u64_u32 v[4:5], null, v0, v1, v[2:3]" + END
    (one,) = judged(kernel_source("k", body, descriptor=WAVE32), "gfx1100", "gfx1151")
    assert (one.name, one.verdict, one.reasons) == ("k", AuditVerdict.SAFE, ())
    assert (one.instructions, one.differing) == (4, 0)


def test_an_instruction_that_the_other_has_not_is_told(judged: Judges) -> None:
    source = kernel_source(body="s_nop 0\ns_add_f32 s0, s1, s2" + END, descriptor=WAVE32 | FOR_16_SGPRS)
    (one,) = judged(source, "gfx1151", "gfx1103")
    assert one.verdict is AuditVerdict.NOT_SAFE
    assert one.differing == 1
    (reason,) = (one for one in one.reasons if one.kind == "decoding")
    assert "1 of its 3 instructions" in reason.text
    assert "s_add_f32 s0, s1, s2 is .long" in reason.text


def test_the_same_instruction_in_another_encoding_is_not_safe(judged: Judges) -> None:
    source = kernel_source(body="s_load_b64 s[4:5], s[0:1], 0x10" + END, descriptor=WAVE32)
    (one,) = judged(source, "gfx1100", "gfx1200")
    assert one.verdict is AuditVerdict.NOT_SAFE
    assert "decoding" in kinds(one)


def test_a_longer_instruction_on_the_other_is_not_safe_and_all_of_it_is_compared(judged: Judges) -> None:
    body = (
        "v_add_nc_u32 v0, v1, v2\nimage_sample v[0:3], v[0:1], s[0:7], s[8:11] dmask:0xf dim:SQ_RSRC_IMG_2D"
    )
    (one,) = judged(kernel_source(body=body + END, descriptor=WAVE32), "gfx1030", "gfx1100")
    assert one.verdict is AuditVerdict.NOT_SAFE
    assert one.differing >= 2


def test_only_another_spelling_is_no_difference(judged: Judges) -> None:
    body = "v_add_f16 v0, v1, v2\nv_cvt_f16_f32 v3, v4\nv_pack_b32_f16 v5, v6, v7" + END
    flags = kernel_source(body=body, descriptor=WAVE32)
    (one,) = judged(flags.replace("v_add_f16 v0, v1, v2", ".long 0x64000501"), "gfx1100", "gfx1150")
    assert one.differing == 0


def test_more_registers_than_a_work_group_can_have_are_told_with_what_fits(judged: Judges) -> None:
    source = kernel_source(descriptor={**WAVE32, "next_free_vgpr": 168, "workgroup_processor_mode": 1})
    (one,) = judged(source, "gfx1100", "gfx1103")
    assert one.verdict is AuditVerdict.NOT_SAFE
    (reason,) = one.reasons
    assert reason.kind == "resources"
    # 168 are given out as 176; 1024 // 176 = 5 waves in each of 4 units, of 32 work-items
    assert "1,408 vector registers" in reason.text
    assert "groups of at most 640" in reason.text
    (other,) = judged(source, "gfx1100", "gfx1151")
    assert other.verdict is AuditVerdict.SAFE


def test_a_kernel_of_small_work_groups_may_use_as_many(judged: Judges) -> None:
    source = kernel_source(
        descriptor={**WAVE32, "next_free_vgpr": 168, "workgroup_processor_mode": 1},
        metadata={"max_flat_workgroup_size": 256},
    )
    (one,) = judged(source, "gfx1100", "gfx1103")
    assert one.verdict is AuditVerdict.SAFE


def test_a_wave_size_that_is_not_there_is_not_safe(judged: Judges) -> None:
    (one,) = judged(kernel_source(descriptor=WAVE32), "gfx1030", "gfx900")
    assert one.verdict is AuditVerdict.NOT_SAFE
    assert "it uses waves of 32 work-items, which gfx900 does not support" in {r.text for r in one.reasons}


def test_a_fault_of_the_hardware_that_the_compiler_did_not_know_of_is_not_checked(judged: Judges) -> None:
    uses = kernel_source(body="v_rcp_f32 v0, v1\nv_add_f32 v1, v0, v0" + END, descriptor=WAVE32)
    (one,) = judged(uses, "gfx1151", "gfx1103")
    assert one.verdict is AuditVerdict.NOT_CHECKED
    assert kinds(one) == {"valu-trans-use-hazard"}
    (other,) = judged(
        kernel_source(body="v_add_f32 v1, v0, v0" + END, descriptor=WAVE32), "gfx1151", "gfx1103"
    )
    assert other.verdict is AuditVerdict.SAFE


def test_a_generation_with_other_rules_is_never_safe(judged: Judges) -> None:
    (one,) = judged(kernel_source(), "gfx803", "gfx900")
    assert one.differing == 0
    assert one.verdict is AuditVerdict.NOT_CHECKED
    assert {"volcanic-islands", "gfx9"} <= kinds(one)


def test_words_that_are_no_instruction_are_not_checked(judged: Judges) -> None:
    source = kernel_source(body="s_branch skip\n.long 0xfefefefe\nskip:" + END, descriptor=WAVE32)
    (one,) = judged(source, "gfx1100", "gfx1151")
    assert one.verdict is AuditVerdict.NOT_CHECKED
    assert kinds(one) == {"data"}


def test_padding_behind_a_kernel_is_no_hindrance(judged: Judges) -> None:
    source = kernel_source(body="s_nop 0" + END + ".fill 48, 4, 0xbf9f0000\n", descriptor=WAVE32)
    (one,) = judged(source, "gfx1100", "gfx1151")
    assert one.verdict is AuditVerdict.SAFE


FUNCTION = """
.text
.p2align 8
.type helper,@function
helper:
s_add_f32 s0, s1, s2
s_setpc_b64 s[30:31]
.Lhelper_end:
.size helper, .Lhelper_end-helper
"""


@pytest.mark.parametrize("way", ["s_swappc_b64 s[30:31], s[4:5]", "s_cbranch_scc0 helper", "s_branch helper"])
def test_a_kernel_that_may_come_to_other_code_is_judged_with_it(judged: Judges, way: str) -> None:
    source = kernel_source("calls", way + END, descriptor=WAVE32)
    (one,) = judged(source + FUNCTION, "gfx1151", "gfx1103")
    assert one.verdict is AuditVerdict.NOT_CHECKED
    (reason,) = one.reasons
    assert reason.kind == "calls"
    assert "helper: 1 of its" in reason.text


def test_a_kernel_that_stays_in_its_code_is_not_judged_by_its_neighbours(judged: Judges) -> None:
    source = kernel_source("stays", "top: s_cbranch_scc0 top" + END, descriptor=WAVE32)
    (one,) = judged(source + FUNCTION, "gfx1151", "gfx1103")
    assert one.verdict is AuditVerdict.SAFE


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("s_getreg_b32 s0, hwreg(HW_REG_HW_ID1)", "card registers"),
        ("s_getreg_b32 s0, hwreg(63)", "unnamed messages"),
        ("s_sendmsg sendmsg(100, 0, 0)", "unnamed messages"),
        ("ds_gws_barrier v0 gds", "global wave sync"),
        ("s_sethalt 1", "trap handler"),
        ("s_trap 1", "other traps"),
    ],
)
def test_what_asks_the_card_itself_is_not_checked(judged: Judges, body: str, kind: str) -> None:
    (one,) = judged(kernel_source(body=body + END, descriptor=WAVE32), "gfx1100", "gfx1103")
    assert one.verdict is AuditVerdict.NOT_CHECKED
    assert kinds(one) == {kind}


@pytest.mark.parametrize("body", ["s_trap 2", "s_getreg_b32 s0, hwreg(HW_REG_MODE)", "s_barrier"])
def test_what_all_cards_of_a_family_do_alike_is_safe(judged: Judges, body: str) -> None:
    (one,) = judged(kernel_source(body=body + END, descriptor=WAVE32), "gfx1100", "gfx1103")
    assert one.verdict is AuditVerdict.SAFE


def test_a_fixed_mode_that_the_card_may_not_be_in_is_not_checked(judged: Judges) -> None:
    source = kernel_source()
    (one,) = judged(source, "gfx900:xnack-", "gfx902")
    assert one.verdict is AuditVerdict.NOT_CHECKED
    assert kinds(one) == {"mode"}
    (other,) = judged(source, "gfx900:xnack-", "gfx902:xnack-")
    assert other.verdict is AuditVerdict.SAFE


def test_a_file_that_is_damaged_is_not_checked_and_says_so(tmp_path: Path) -> None:
    path = assemble(tmp_path, kernel_source(descriptor=WAVE32), "gfx1100")
    path.write_bytes(path.read_bytes()[:700])
    (one,) = judge_file(path, "gfx1100", "gfx1151")
    assert (one.name, one.verdict, kinds(one)) == ("", AuditVerdict.NOT_CHECKED, {"damaged"})


def test_code_that_names_no_kernels_is_not_safe_for_that(judged: Judges) -> None:
    (one,) = judged(".text\ns_endpgm\n", "gfx1100", "gfx1151")
    assert (one.verdict, kinds(one)) == (AuditVerdict.NOT_CHECKED, {"no kernels"})


def test_a_symbols_name_cannot_write_lines_into_a_listing(tmp_path: Path) -> None:
    source = kernel_source(descriptor=WAVE32) + ".globl x___s_endpgm\nx___s_endpgm: s_nop 0\n"
    path = assemble(tmp_path, source, "gfx1100")
    path.write_bytes(path.read_bytes().replace(b"x___s_endpgm", b"x>:\n\ts_endpg"))
    (one,) = judge_file(path, "gfx1100", "gfx1151")
    assert (one.verdict, kinds(one)) == (AuditVerdict.NOT_CHECKED, {"damaged"})


def test_a_section_cannot_show_other_code_than_is_loaded(tmp_path: Path) -> None:
    path = assemble(tmp_path, kernel_source(body="s_nop 0" + END, descriptor=WAVE32), "gfx1100")
    code = bytearray(path.read_bytes())
    file = CodeFile(bytes(code), "x")
    (number,) = (number for number, one in enumerate(file.sections) if file.holds_code(one))
    entry = int.from_bytes(code[40:48], "little") + 64 * number
    code[entry + 24 : entry + 32] = (file.sections[number].offset + 4).to_bytes(8, "little")
    path.write_bytes(code)
    (one,) = judge_file(path, "gfx1100", "gfx1151")
    assert (one.verdict, kinds(one)) == (AuditVerdict.NOT_CHECKED, {"damaged"})


def test_damage_anywhere_never_ends_the_audit(tmp_path: Path) -> None:
    path = assemble(tmp_path, kernel_source(body="s_nop 0" + END, descriptor=WAVE32), "gfx1100")
    found = [*damages(path.read_bytes())]
    for damaged in found[:: len(found) // 24]:
        path.write_bytes(damaged)
        assert judge_file(path, "gfx1100", "gfx1151")


def test_a_kernel_whose_symbol_is_gone_is_not_checked(tmp_path: Path) -> None:
    path = assemble(tmp_path, FUNCTION + kernel_source("k", descriptor=WAVE32), "gfx1151")
    subprocess.run([llvm_tool("llvm-objcopy"), "--strip-symbol=k", path], check=True)
    (one,) = judge_file(path, "gfx1151", "gfx1150")
    assert (one.verdict, kinds(one)) == (AuditVerdict.NOT_CHECKED, {"no symbol"})


def test_metadata_and_descriptor_that_disagree_are_not_checked(judged: Judges) -> None:
    source = kernel_source(descriptor=WAVE32, metadata={"group_segment_fixed_size": 64})
    (one,) = judged(source, "gfx1100", "gfx1151")
    assert (one.verdict, kinds(one)) == (AuditVerdict.NOT_CHECKED, {"contradiction"})
