"""What a lock has shown, from the records."""

from __future__ import annotations

from collections.abc import Sequence

from rocwright.cycle.channels import Shown
from rocwright.records.model import SAID, Run
from rocwright.records.read import Records


def shown(records: Records, runs: Sequence[Run]) -> tuple[str, Shown]:
    """The run that says the most of a lock, and what the lock has shown; `runs` are those of the lock."""
    saying = [(SAID.index(run.said), run.number, run) for run in runs if run.said]
    best = max(saying, key=lambda one: one[:2])[2] if saying else None
    checked = next((run for run in runs if run.command == "verify" and run.state == "ended"), None)
    findings = tuple(records.findings(run=checked.id)) if checked else ()
    return (best.id, Shown(said=best.said, findings=findings)) if best else ("", Shown(said=""))
