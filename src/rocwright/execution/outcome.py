"""How a run of steps and a build went: apart from what runs them, which is slow to import."""

from __future__ import annotations

from dataclasses import dataclass, field

from rocbase.errors import ExplainedError
from rocwright.plan.resolve.model import Lock
from rocwright.provenance.layout import Artifact
from rocwright.records.model import Finding, Run, StepRun


@dataclass(slots=True, kw_only=True)
class StepsOutcome:
    """How the steps went; `failures` are told together."""

    steps: list[StepRun] = field(default_factory=list)
    failures: list[tuple[str, ExplainedError]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a build did, from which lock, and what checks found where it was verified."""

    run: Run
    lock: Lock
    artifacts: tuple[Artifact, ...]
    failures: tuple[tuple[str, ExplainedError], ...]
    findings: tuple[Finding, ...] = ()
