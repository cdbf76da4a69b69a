"""What a run of steps is asked for, and how it went: apart from what runs them, which is slow to import."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from rocbase.errors import ExplainedError
from rocwright.provenance.layout import Artifact
from rocwright.records.model import Finding, Run, StepRun
from rocwright.resolve.model import Lock

LOCAL = "local"
"""The executor that runs steps on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user may say about a run: most jobs at once, most memory of the whole in bytes, whether steps
    share the jobs by a job server, whether they may have a compiler cache, the engine by name, whether
    changes in trees that nobody saved are thrown away, whether the folder of a step stays that was stopped
    for a full disk, whether steps that were cut short may go on where they were (else they start clean), and
    what runs the steps: an executor, by name; and into how many shards large steps are split, None for as
    many as the executor has machines."""

    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    memory: int | None = None
    sharing: bool = True
    compiler_cache: bool = True
    engine: str | None = None
    discard: bool = False
    keep_stopped: bool = False
    resume: bool = True
    executor: str = LOCAL
    shards: int | None = None


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
