"""Whether what a wheel holds runs on a GPU: one case for each verdict, and exit codes for scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rocwheel.cli import cli
from rocwheel.wheels.choose import Target
from rocwheel.wheels.devicecode.gpu import machines
from rocwheel.wheels.devicecode.loose import kinds
from rocwheel.wheels.runs_on import Judged, RunsOn, runs_on, worst
from rocwheel_samples.fatbin import entry_id, fatbin, gpu_elf, host_elf, plain_bundle, write_wheel

NUMBERS = {name: number for number, name in machines().items()}
TENSILE = "x/rocblas/library/TensileLibrary_Type_{}_Contraction_l_Ailk_Bjlk_Cijk_Dijk_{}.co"


def code(target: str) -> tuple[str, bytes]:
    """A bundle's entry for a target; features are `gfx90a:xnack-`."""
    name, *features = target.split(":")
    flags = NUMBERS[name] | (1 << 24 if "generic" in name else 0)
    for feature in features:
        flags |= {"xnack-": 0x200, "xnack+": 0x300, "sramecc-": 0x800, "sramecc+": 0xC00}[feature]
    return entry_id(target), gpu_elf(flags)


def library(*bundles: list[str]) -> bytes:
    return host_elf(fatbin([plain_bundle([code(target) for target in targets]) for targets in bundles]))


def judged(tmp_path: Path, gpu: str, files: dict[str, bytes]) -> list[Judged]:
    name, *features = gpu.split(":")
    return runs_on(write_wheel(tmp_path / "x.whl", files), Target(name, tuple(features)))


def verdict(tmp_path: Path, gpu: str, *bundles: list[str]) -> Judged:
    (one,) = judged(tmp_path, gpu, {"x.so": library(*bundles)})
    return one


def test_code_for_the_target_itself_is_native(tmp_path: Path) -> None:
    one = verdict(tmp_path, "gfx1151", ["gfx1100", "gfx1151"], ["gfx1151"])
    assert one.verdict is RunsOn.NATIVE
    assert one.reason == "2 fat binaries with code for gfx1151"


def test_a_generic_target_covers_it(tmp_path: Path) -> None:
    one = verdict(tmp_path, "gfx1151", ["gfx1151"], ["gfx11-generic"])
    assert one.verdict is RunsOn.GENERIC
    assert "gfx11-generic, which covers gfx1151" in one.reason


def test_another_target_runs_by_the_override_that_is_known(tmp_path: Path) -> None:
    one = verdict(tmp_path, "gfx1103", ["gfx1100", "gfx1030"])
    assert one.verdict is RunsOn.OVERRIDE
    assert one.through == "gfx1100"
    assert one.setting == {"HSA_OVERRIDE_GFX_VERSION": "11.0.0"}
    assert "audit-override --code gfx1100 --on gfx1103" in one.reason
    assert "hang" in one.reason  # what the catalog knows of it


def test_an_override_must_serve_every_fat_binary(tmp_path: Path) -> None:
    one = verdict(tmp_path, "gfx1103", ["gfx1100"], ["gfx1102"])
    assert one.verdict is RunsOn.NO
    both = verdict(tmp_path, "gfx1103", ["gfx1100", "gfx1102"], ["gfx1102"])
    assert (both.verdict, both.through) == (RunsOn.OVERRIDE, "gfx1102")


def test_where_nothing_fits_the_reason_says_what_there_is(tmp_path: Path) -> None:
    one = verdict(tmp_path, "gfx803", ["gfx1100"], ["gfx803"], ["gfx90a:xnack-"])
    assert one.verdict is RunsOn.NO
    assert one.reason == (
        "2 of 3 fat binaries without code for gfx803; there is code for gfx1100, gfx803, gfx90a:xnack-"
    )


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        ("gfx90a", RunsOn.NATIVE),
        ("gfx90a:xnack-", RunsOn.NATIVE),
        ("gfx90a:xnack+", RunsOn.NO),
        ("gfx90a:sramecc+", RunsOn.NATIVE),
    ],
)
def test_fixed_features_are_minded(tmp_path: Path, gpu: str, expected: RunsOn) -> None:
    assert verdict(tmp_path, gpu, ["gfx90a:xnack-"]).verdict is expected


def test_a_lone_code_object_is_judged_by_its_header(tmp_path: Path) -> None:
    (one,) = judged(tmp_path, "gfx803", {"kernel.bin": code("gfx803")[1]})
    assert one.verdict is RunsOn.NATIVE


def test_matrix_kernels_for_others_only_end_the_program(tmp_path: Path) -> None:
    files = {TENSILE.format("HH", "gfx906"): b"x", "x/rocblas/library/TensileLibrary_lazy_gfx906.dat": b"x"}
    (one,) = judged(tmp_path, "gfx803", files)
    assert (one.path, one.verdict) == ("x/rocblas/library", RunsOn.NO)
    assert (
        "no file for gfx803 among those for gfx906; the first matrix product aborts the program" in one.reason
    )


def test_an_override_leads_to_matrix_kernels_too(tmp_path: Path) -> None:
    (one,) = judged(tmp_path, "gfx1103", {TENSILE.format("HH", "gfx1100"): b"x"})
    assert (one.verdict, one.through) == (RunsOn.OVERRIDE, "gfx1100")


def test_operations_that_have_only_fallback_kernels_are_named(tmp_path: Path) -> None:
    files = {
        TENSILE.format("HH", "gfx1100"): b"x",
        TENSILE.format("SS", "gfx1100"): b"x",
        TENSILE.format("SS", "gfx1102"): b"x",
        TENSILE.format("HH", "fallback_gfx1102"): b"x",
    }
    (one,) = judged(tmp_path, "gfx1102", files)
    assert one.verdict is RunsOn.SLOWER
    assert "fallback kernels for half precision" in one.reason and "single" not in one.reason
    (other,) = judged(tmp_path, "gfx1100", files)
    assert other.verdict is RunsOn.NATIVE


def test_tuning_data_for_others_only_are_slower(tmp_path: Path) -> None:
    (one,) = judged(tmp_path, "gfx1151", {"share/miopen/db/gfx90a68.kdb": b"x"})
    assert one.verdict is RunsOn.SLOWER
    assert "compiled when they are first needed" in one.reason


def test_families_of_kernels_are_understood(tmp_path: Path) -> None:
    files = {"torch/lib/aotriton.images/amd-gfx11xx/flash/attn_fwd/x.hsaco": b"x"}
    (one,) = judged(tmp_path, "gfx1151", files)
    assert (one.path, one.verdict) == ("torch/lib/aotriton.images", RunsOn.NATIVE)
    (other,) = judged(tmp_path, "gfx1201", files)
    assert other.verdict is RunsOn.SLOWER


def test_nothing_of_the_gpu_is_no_verdict(tmp_path: Path) -> None:
    assert judged(tmp_path, "gfx1151", {"x.py": b"pass"}) == []
    assert worst([]) is RunsOn.NATIVE


def test_every_kind_says_what_is_missing_without_it() -> None:
    assert all(kind.missing and kind.source for kind in kinds())


def test_the_command_tells_scripts_by_its_exit_code(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "x.whl", {"x.so": library(["gfx1100"])})
    run = CliRunner().invoke

    assert run(cli, ["check-gpu", "gfx1100", str(wheel)]).exit_code == 0
    assert run(cli, ["check-gpu", "gfx803", str(wheel)]).exit_code == 12
    assert run(cli, ["check-gpu", "gfx1103", str(wheel)]).exit_code == 12
    assert run(cli, ["check-gpu", "gfx1103", "--with-override", str(wheel)]).exit_code == 0

    told = json.loads(run(cli, ["check-gpu", "Strix Halo", "--json", str(wheel)]).stdout)
    assert told["gpu"] == "gfx1151" and told["runs"] is False
    assert told["judged"][str(wheel)][0]["verdict"] == "only with an override"


def test_files_of_one_code_object_each_are_judged_by_folder(tmp_path: Path) -> None:
    files = {
        f"x/hsa/{target}/kernel{number}.co": code(target)[1]
        for target in ("gfx942", "gfx950")
        for number in range(3)
    }
    (one,) = judged(tmp_path, "gfx950", files)
    assert (one.path, one.verdict) == ("x/hsa/*", RunsOn.NATIVE)
    assert one.reason == "6 files, a code object each; 3 of them for gfx950"
    (other,) = judged(tmp_path, "gfx803", files)
    assert other.verdict is RunsOn.NO
    assert "6 files, a code object each" in other.reason and "gfx942, gfx950" in other.reason


def test_files_that_no_target_is_named_in_are_judged_each(tmp_path: Path) -> None:
    named = {f"x/add_{target}.bin": code(target)[1] for target in ("gfx942", "gfx950")}
    files = {"x/old.co": code("gfx803")[1], "x/new.co": code("gfx950")[1], **named}
    assert {one.path: one.verdict for one in judged(tmp_path, "gfx950", files)} == {
        "x/add_*.bin": RunsOn.NATIVE,
        "x/new.co": RunsOn.NATIVE,
        "x/old.co": RunsOn.NO,
    }
