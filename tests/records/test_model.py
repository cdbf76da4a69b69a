"""What a run is evidence of."""

from __future__ import annotations

from rocwright.records.model import Finding, StepRun, said_of


def test_a_verification_that_looked_at_nothing_is_evidence_of_nothing() -> None:
    absent = Finding(component="torch", check="smoke", name="adds", ok=True, absent=True)
    for found in ((), (absent,)):
        assert said_of("verify", "verified", found) == ""


def test_the_error_of_a_run_of_before_has_the_names_of_today() -> None:
    run = StepRun(name="torch", key="", outcome="failed", error={"class": "compile", "what": "it broke"})
    assert run.error == {"class": "compile", "message": "it broke"}
