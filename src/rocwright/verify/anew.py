"""Whether what is built was compiled anew, or with what earlier steps left in a compiler cache."""

from __future__ import annotations

from collections.abc import Iterable

from rocwright.model.steps import Plan, Step
from rocwright.project import Project
from rocwright.records.model import ANEW, OWN_SHARDS, Finding, now
from rocwright.records.opening import read_records
from rocwright.records.read import Records


def compiled_anew(project: Project, plan: Plan) -> Finding | None:
    """One finding for all that the steps of a plan have compiled; None where there are no such steps.

    It is absent where a step had a compiler cache that was filled, went on in a kept tree, or where nothing
    tells, unless a second build from nothing gave the same bytes.
    """
    steps = [step for step in plan.steps if step.kind == "run"]
    if not steps:
        return None
    with read_records(project.home) as records:
        unproved = [step for step in steps if not _is_anew(project, step, records)]
    resumed = [step.name for step in unproved if _is_resumed(project, step)]
    cached = [step.name for step in unproved if step.name not in resumed]
    notes = [f"{', '.join(cached)}: with a compiler cache that earlier steps filled"] if cached else []
    notes += [f"{', '.join(resumed)}: gone on with in a kept tree"] if resumed else []
    return Finding(
        component=steps[-1].component,
        check=ANEW,
        name="without what earlier steps left in a compiler cache, or the same bytes without",
        ok=True,
        absent=bool(unproved),
        detail="; ".join(notes) if unproved else f"{len(steps)} steps",
        when=now(),
    )


def compiled_by_others(project: Project, plan: Plan) -> Finding | None:
    """One finding where other owners compiled a part of what is built, as shards or as single objects, unless
    a second build from nothing gave the same bytes; else None. A channel takes none of these."""
    steps = [step for step in plan.steps if step.kind == "run"]
    with read_records(project.home) as records:
        named = [note for step in steps if (note := _by_others(project, step, records))]
    if not named:
        return None
    return Finding(
        component=steps[-1].component,
        check=OWN_SHARDS,
        name="no part was compiled by another owner, or the same bytes without",
        ok=True,
        absent=True,
        detail="; ".join(named),
        when=now(),
    )


def _by_others(project: Project, step: Step, records: Records) -> str:
    record = project.store.record(step.key)
    signers = record.compiled_by_others() if record is not None else ()
    if record is None or not signers:
        return ""
    if all(_is_reproduced(records.findings(sha256=output.sha256)) for output in record.outputs):
        return ""
    return f"{step.name}: signed by {', '.join(signer[:12] for signer in signers)}"


def _is_anew(project: Project, step: Step, records: Records) -> bool:
    record = project.store.record(step.key)
    if record is None:
        return False
    if record.cache is not None and record.cache.state != "filled" and not record.resumed:
        return True
    return all(_is_reproduced(records.findings(sha256=output.sha256)) for output in record.outputs)


def _is_resumed(project: Project, step: Step) -> bool:
    record = project.store.record(step.key)
    return record is not None and record.resumed > 0


def _is_reproduced(newest_first: Iterable[Finding]) -> bool:
    return next((finding.ok for finding in newest_first if finding.check == "reproduce"), False)
