"""What a run is evidence of."""

from __future__ import annotations

from rocwright.records.model import SAID, Finding, as_emulated, said_of


def test_a_verification_that_looked_at_nothing_is_evidence_of_nothing() -> None:
    absent = Finding(component="torch", check="smoke", name="adds", ok=True, absent=True)
    for found in ((), (absent,)):
        assert said_of("verify", "verified", found) == ""


def ran(*devices: str) -> list[Finding]:
    return [Finding(component="x", check="y", name="z", ok=True, device=one) for one in devices]


def test_an_emulated_gpu_is_more_than_software_and_less_than_a_gpu() -> None:
    emulated, card = "emulated AMD Radeon 780M Graphics (gfx1103)", "AMD Radeon 780M Graphics (gfx1103)"
    assert said_of("verify", "verified", ran("cpu", "")) == "ran in software"
    assert said_of("verify", "verified", ran("cpu", emulated)) == "ran on an emulated GPU"
    assert said_of("verify", "verified", ran(emulated, card)) == "ran on a GPU"
    order = [SAID.index(one) for one in ("ran in software", "ran on an emulated GPU", "ran on a GPU")]
    assert order == sorted(order)


def test_what_a_process_in_an_emulator_found_is_never_a_gpus() -> None:
    for told in ran("AMD Radeon 780M Graphics", "emulated gfx1103"):
        assert said_of("verify", "verified", [as_emulated(told)]) == "ran on an emulated GPU"
    for told in ran("cpu", "llvmpipe (LLVM 22)", ""):
        assert as_emulated(told) == told
