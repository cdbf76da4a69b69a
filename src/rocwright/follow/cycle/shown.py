"""What a lock has shown, from the records: rows that contradict each other show nothing."""

from __future__ import annotations

from collections.abc import Sequence

from rocbase.errors import InputError
from rocwright.follow.cycle.channels import LockEvidence
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project, built_outputs
from rocwright.provenance.checks.passed import Passed
from rocwright.records.model import SAID, Figure, Finding, Promotion, Run, Which, said_of
from rocwright.records.read import Records
from rocwright.verify.bench.on_record import measured


def shown(records: Records, runs: Sequence[Run]) -> tuple[str, LockEvidence]:
    """The run that says the most of a lock, and what the lock has shown; `runs` are those of the lock."""
    saying = [(SAID.index(run.said), run.number, run) for run in runs if run.said in SAID]
    ranked = [run for *_, run in sorted(saying, key=lambda entry: entry[:2], reverse=True)]
    best = next((run for run in ranked if agree(run, records.findings(run=run.id))), None)
    checked = next((run for run in runs if run.command == "verify" and run.state == "ended"), None)
    if best is None:
        return "", LockEvidence(said="")
    findings = tuple(records.findings(run=checked.id)) if checked else ()
    if checked is not None and not agree(checked, findings):
        return "", LockEvidence(said="")
    return best.id, LockEvidence(
        said=best.said, findings=findings, measured=measured_of(records, best, best.lock)
    )


def measured_of(records: Records, run: Run, lock: str) -> tuple[Figure, ...]:
    """What was measured of a lock, in the cell of a run."""
    if not lock:
        return ()
    which = Which(stack=run.stack, gpu=run.gpu[0], base=run.base, variant=run.variant, lock=lock)
    return measured(records, which)


def agree(run: Run, findings: Sequence[Finding]) -> bool:
    """Whether what a run says of itself follows from its findings: a damaged row on either side does not."""
    if run.command != "verify" or run.state != "ended":
        return run.said == said_of(run.command, run.outcome, findings)
    devices = ", ".join(sorted({finding.device for finding in findings if finding.device}))
    if run.outcome in ("verified", "failed") and (run.outcome == "verified") != all(
        finding.ok for finding in findings
    ):
        return False
    return run.said == said_of(run.command, run.outcome, findings) and run.device == devices


def promotions_of(records: Records, *, stack: str, gpu: str, base: str, variant: str) -> list[Promotion]:
    """What the channels of a cell held, the newest first.

    Left out is a promotion of which the matrix, which has each a second time, tells something else.
    """
    cells = records.matrix(stack=stack, gpu=gpu, base=base, variant=variant)
    channels = cells[0].channels if cells else {}
    promotions: list[Promotion] = []
    newest: set[str] = set()
    for promotion in records.promotions(stack=stack, gpu=gpu, base=base, variant=variant):
        recorded = channels.get(promotion.channel)
        first = promotion.channel not in newest
        newest.add(promotion.channel)
        if not first or (
            recorded is not None and (recorded.run, recorded.at) == (promotion.run, promotion.at)
        ):
            promotions.append(promotion)
    return promotions


def failed_here(project: Project, lock: Lock) -> str:
    """Why a lock is not promoted, whatever the records say: checks that failed on this machine for what the
    store has of it; "" where none did, or it was not built here."""
    try:
        outputs = built_outputs(project, make_plan(lock, project.catalog))
    except InputError:
        return ""
    passed = Passed(
        home=project.home, store=project.store, catalog=project.catalog, lock=lock, outputs=outputs
    )
    failed = passed.failed()
    return f"checks failed here: {', '.join(failed[:3])}" if failed else ""
