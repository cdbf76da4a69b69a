"""What a build did: the steps that ran, what came of them, and what failed or was found."""

from __future__ import annotations

from dataclasses import dataclass

from rocbase.errors import ExplainedError
from rocwright.provenance.layout import Artifact
from rocwright.records.model import Finding, Run
from rocwright.resolve.model import Lock


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a build did, from which lock, and what checks found where it was verified."""

    run: Run
    lock: Lock
    artifacts: tuple[Artifact, ...]
    failures: tuple[tuple[str, ExplainedError], ...]
    findings: tuple[Finding, ...] = ()
