from __future__ import annotations

import json
from pathlib import Path

import pytest

import rocwheel
from rocbase.errors import InputError
from rocwheel.wheels.audit.judge import AuditVerdict
from rocwheel.wheels.audit.run import advice, audit_override
from rocwheel_samples.command import Command
from rocwheel_samples.fatbin import entry_id, fatbin, host_elf, plain_bundle, write_wheel
from rocwheel_samples.gpu_assembly import assemble, kernel_source

WAVE32 = {"wavefront_size32": 1}
MISSING = "s_add_f32 s0, s1, s2\ns_endpgm"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel with a library of two bundles, one with an instruction that gfx1103 has not, and a file."""
    sound = kernel_source("sound", descriptor=WAVE32)
    bundles = [
        {"gfx1151": sound, "gfx906": kernel_source("other")},
        {"gfx1151": kernel_source("missing", MISSING, descriptor=WAVE32)},
    ]
    made = fatbin(
        [
            plain_bundle(
                [
                    (entry_id(target), assemble(tmp_path, source, target).read_bytes())
                    for target, source in one.items()
                ]
            )
            for one in bundles
        ]
    )
    lone = assemble(tmp_path, sound, "gfx1151").read_bytes()
    return write_wheel(tmp_path / "x-1-py3-none-any.whl", {"x/a.co": lone, "x/lib.so": host_elf(made)})


def test_every_code_object_of_the_target_is_judged_and_no_other(wheel: Path) -> None:
    heard: list[tuple[int, int]] = []
    report = audit_override(wheel, "gfx1151", "gfx1103", tell=lambda *counts: heard.append(counts))
    assert [(one.path, one.index, [k.name for k in one.kernels]) for one in report.objects] == [
        ("x/a.co", None, ["sound"]),
        ("x/lib.so", 0, ["sound"]),
        ("x/lib.so", 1, ["missing"]),
    ]
    assert report.counts == {AuditVerdict.SAFE: 2, AuditVerdict.NOT_SAFE: 1}
    assert report.verdict is AuditVerdict.NOT_SAFE
    ((count, kernel, reason),) = report.reasons
    assert (count, kernel.name, reason.kind) == (1, "missing", "decoding")
    assert (heard[0], heard[-1]) == ((0, 3), (3, 3))


def test_a_target_without_code_there_is_told_with_those_that_have(wheel: Path) -> None:
    with pytest.raises(InputError, match="no code for gfx1100") as error:
        audit_override(wheel, "gfx1100", "gfx1103")
    assert error.value.cause == "it holds code for gfx1151, gfx906"


def test_a_target_that_nobody_knows_is_refused(wheel: Path) -> None:
    with pytest.raises(InputError, match="unknown GPU target 'gfx9999'"):
        audit_override(wheel, "gfx1151", "gfx9999")


def test_the_targets_may_be_named_as_people_name_gpus(wheel: Path) -> None:
    named = rocwheel.audit_override(str(wheel), "Strix Halo", "780M")
    assert (named.code, named.on) == ("gfx1151", "gfx1103")
    assert audit_override(wheel, "Radeon 8060S", "1002:15bf").counts == named.counts


def test_what_makes_a_card_pass_for_another_is_known() -> None:
    told = advice("gfx1100", "gfx1103")
    assert (told.variable, told.value) == ("HSA_OVERRIDE_GFX_VERSION", "11.0.0")
    assert "11.0.0" in told.tried
    assert advice("gfx11-generic", "gfx1103").value == ""


def test_the_command_ends_with_0_where_all_is_safe_and_else_with_12(wheel: Path, rocwheel: Command) -> None:
    verb = ("audit-override", str(wheel), "--code", "gfx1151")
    safe = rocwheel(*verb, "--on", "gfx1150")
    assert (safe.returncode, safe.stderr) == (0, "")
    assert "safe: every kernel is safe" in safe.stdout
    assert "checked without a GPU" in safe.stdout
    assert "HSA_OVERRIDE_GFX_VERSION=11.5.1" in safe.stdout
    wrong = rocwheel(*verb, "--on", "gfx1103")
    assert wrong.returncode == 12
    assert "1 of its 2 instructions decode differently" in wrong.stdout


def test_the_command_tells_the_same_as_json(wheel: Path, rocwheel: Command) -> None:
    done = rocwheel("audit-override", str(wheel), "--code", "gfx1151", "--on", "gfx1103", "--json")
    assert done.returncode == 12
    data = json.loads(done.stdout)
    assert data["verdict"] == "not safe"
    assert data["kernels"] == {"safe": 2, "not safe": 1}
    assert data["override"]["value"] == "11.5.1"
    kernel = data["objects"][2]["kernels"][0]
    assert (kernel["name"], kernel["reasons"][0]["kind"]) == ("missing", "decoding")
