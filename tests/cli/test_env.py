"""`rocwright env` and `rocwright targets`, as a user runs them."""

from __future__ import annotations

import json
import subprocess

import pytest
from tests.conftest import Command


def test_bash_takes_the_environment_that_is_printed(rocwright: Command) -> None:
    script = rocwright("env", "--gpu", "gfx803").stdout
    told = "printf '%s ' $ROC_ENABLE_PRE_VEGA $HSA_OVERRIDE_GFX_VERSION ${HIP_LAUNCH_BLOCKING-unset}"
    done = subprocess.run(
        ["bash", "-eu", "-c", f"{script}\n{told}"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1 8.0.3 unset "
    assert done.stderr == ""


def test_each_variable_has_its_reason_and_its_source_before_it(rocwright: Command) -> None:
    lines = rocwright("env", "--gpu", "780M").stdout.splitlines()
    at = lines.index("export HSA_ENABLE_SDMA='0'")
    assert lines[at - 1].startswith("# recommended: ")
    assert "#6386" in lines[at - 1]


@pytest.mark.parametrize("gpu", ["gfx803", "gfx1036", "gfx1103", "gfx1151"])
@pytest.mark.parametrize("shell", ["bash", "fish", "nu", "powershell"])
def test_no_override_is_in_the_environment_of_a_build(rocwright: Command, gpu: str, shell: str) -> None:
    told = rocwright("env", "--gpu", gpu, "--for", "build", "--shell", shell).stdout
    assert "HSA_OVERRIDE" not in told
    assert f"'{gpu}'" in told


def test_the_words_are_those_of_the_shell(rocwright: Command) -> None:
    told = {
        shell: rocwright("env", "--gpu", "gfx1103", "--shell", shell).stdout
        for shell in ("fish", "nu", "powershell")
    }
    assert "set --export --global HSA_ENABLE_SDMA '0'\n" in told["fish"]
    assert "$env.HSA_ENABLE_SDMA = '0'\n" in told["nu"]
    assert "$env:HSA_ENABLE_SDMA = '0'\n" in told["powershell"]


def test_the_environment_as_json(rocwright: Command) -> None:
    data = json.loads(rocwright("env", "--gpu", "gfx1103", "--for", "build", "--json").stdout)
    assert (data["gpu"], data["for"]) == ("gfx1103", "build")
    first = data["variables"][0]
    assert (first["variable"], first["value"], first["need"]) == ("PYTORCH_ROCM_ARCH", "gfx1103", "required")
    assert first["reason"]
    assert first["source"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--gpu", "RX 99999"), "unknown GPU target"),
        (("--gpu", "Strix"), "more than one target"),
        (("--shell", "csh"), "csh"),
        (("--for", "both"), "both"),
    ],
)
def test_what_cannot_be_answered_is_refused(rocwright: Command, words: tuple[str, ...], said: str) -> None:
    done = rocwright("env", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_the_page_of_a_target_tells_what_is_known_and_from_where(rocwright: Command) -> None:
    page = rocwright("targets", "Strix Halo", "-v").stdout
    for text in (
        "gfx1151  RDNA 3.5 APU",
        "KFD gfx_target_version 110501",
        "Radeon 8060S",
        "therock-wheels >=7.9",
        "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1",
        "warning: 11.0.0 faults",
        "hipSPARSELt #2042",
        "GCVM_L2_PROTECTION_FAULT_STATUS",
        "ROCm/legacy-rocm-build #5724",
    ):
        assert text in page


def test_a_name_of_several_targets_lists_them(rocwright: Command) -> None:
    listed = rocwright("targets", "gfx120X-all").stdout
    assert "gfx1200" in listed
    assert "gfx1201" in listed
    assert "gfx1151" not in listed


def test_the_page_of_a_target_has_the_names_that_are_understood_too(rocwright: Command) -> None:
    page = rocwright("targets", "strixhalo", "-v").stdout
    assert all(name in page for name in ("Ryzen AI Max 390", "Ryzen AI Max PRO 485", "Ryzen AI Max+ 395"))
