"""What a run is evidence of."""

from __future__ import annotations

from rocwright.records.model import Finding, said_of


def test_a_verification_that_looked_at_nothing_is_evidence_of_nothing() -> None:
    absent = Finding(component="torch", check="smoke", name="adds", ok=True, absent=True)
    for found in ((), (absent,)):
        assert said_of("verify", "verified", found) == ""
