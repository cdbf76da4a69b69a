"""Who wants something verified: it is put where machines with the card look, and what they found is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from rocbase.errors import InputError
from rocbase.files.atomic import sha256_bytes
from rocwright.catalog.load import Catalog
from rocwright.execution.runs import UnderWay
from rocwright.model.steps import Plan, Step
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import lock_text
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project, built_outputs
from rocwright.records.model import Finding, Which
from rocwright.records.opening import read_records
from rocwright.records.read import Records
from rocwright.store.shared import SharedStore
from rocwright.store.sharing import WorkingStore
from rocwright.store.trust import TrustedKey
from rocwright.verify.lending.model import Evidence, VerifyWish
from rocwright.verify.lines import printable
from rocwright.verify.prepare import checked_in

# The check of the finding that says on whose card the others were found.
LENT = "lent"


@dataclass(frozen=True, slots=True, kw_only=True)
class LentEvidence:
    """Evidence, what its owner's key is called here and its id, and whether it is on record here only now."""

    by: str
    keyid: str
    evidence: Evidence
    new: bool

    @property
    def ok(self) -> bool:
        """Whether all was found right."""
        return all(finding.ok for finding in self.evidence.findings)


def working(project: Project) -> WorkingStore:
    """The store that other machines see. Raises InputError where it is this machine's alone."""
    store = project.store
    if not isinstance(store, WorkingStore):
        raise InputError(
            f"no other machine sees the store at {store}",
            cause="cards are lent through a store in a bucket, where what is built lies too",
            next_step='set store = "s3://..." in config.toml, then rocwright build: what is here goes there',
        )
    return store


def verify_wish(project: Project, lock: Lock, device: str) -> VerifyWish:
    """What is wanted of a machine. Raises InputError where it is not built, or not for that device."""
    if device and device not in lock.request.gpu:
        raise InputError(
            f"{lock.request.stack} is not built for {device}",
            cause=f"its lock is for {', '.join(lock.request.gpu)}",
            next_step=f"rocwright build {lock.request.stack} --gpu {device}",
        )
    outputs = built_outputs(project, make_plan(lock, project.catalog))
    artifacts = {name: output.sha256 for name, output in outputs.items()}
    return VerifyWish(lock=lock_text(lock), artifacts=artifacts, device=device)


def needed(plan: Plan, catalog: Catalog) -> list[Step]:
    """The steps whose outputs a machine needs that verifies: the artifacts, and what checks run in."""
    names = {*plan.artifacts, *checked_in(plan, catalog)}
    return [step for step in plan.steps if step.name in names]


def put(project: Project, lock: Lock, wish: VerifyWish) -> None:
    """Put it where machines look for it, and what they need. Raises InputError, NetworkError."""
    store = working(project)
    for step in needed(make_plan(lock, project.catalog), project.catalog):
        if store.record(step.key) is None:
            raise InputError(
                f"{step.name} is not built",
                cause="who lends a card builds nothing",
                next_step=f"rocwright verify {lock.request.stack}: it makes it, and checks what needs no GPU",
            )
        store.bring(step.key, here=False)
    store.say_word("wanted", wish.id, wish.model_dump_json())


def answers(project: Project, lock: Lock, wish: VerifyWish, say: Callable[[str], None]) -> list[LentEvidence]:
    """The evidence that trusted machines gave; what is new of it goes on record here.

    What does not fit what is wanted is refused, which is told.
    """
    store = working(project)
    lent = []
    for key, evidence in evidence_of(store.shared[0], wish):
        with read_records(project.home) as records:
            new = records.run(evidence.run) is None
            old = new and _is_older(records, lock, evidence, key)
        if old:
            # who can write to the store can put back what the key signed before
            say(f"the evidence of {wish.id[:12]} by {key.name} was refused: it gave newer evidence before")
            continue
        if new:
            _keep(project, lock, evidence, key.name, key.keyid, say)
        lent.append(LentEvidence(by=key.name, keyid=key.keyid, evidence=evidence, new=new))
    return lent


def _is_older(records: Records, lock: Lock, evidence: Evidence, key: TrustedKey) -> bool:
    """Return whether that key gave newer evidence of this lock on such a card, which is on record."""
    sha256 = sha256_bytes(lock.model_dump_json(by_alias=True).encode())
    lent = records.runs(Which(origin=f"{LENT} by {key.name}", lock=sha256), steps=False)
    notes = (finding for run in lent for finding in records.findings(run=run.id) if finding.check == LENT)
    whose = _whose(key.keyid, evidence.card.target)
    return any(note.detail.startswith(whose) and note.when > evidence.started for note in notes)


def _whose(keyid: str, card: str) -> str:
    return f"key {keyid[:12]}: {card or 'no GPU'}"


def evidence_of(shared: SharedStore, wish: VerifyWish) -> Iterator[tuple[TrustedKey, Evidence]]:
    """The evidence in a store that counts, each with the key that signed it."""
    for key, word in shared.words("evidence", wish.id):
        try:
            evidence = Evidence.model_validate_json(word.content)
        except ValidationError as error:
            shared.say(
                f"{shared.name}: the evidence of {wish.id[:12]} by {key.name} was refused: "
                f"{error.errors()[0]['msg']}"
            )
            continue
        if reason := _odd(evidence, wish):
            shared.say(f"{shared.name}: the evidence of {wish.id[:12]} by {key.name} was refused: {reason}")
            continue
        yield key, evidence


def _odd(evidence: Evidence, wish: VerifyWish) -> str:
    """Why evidence does not count; "" where it does."""
    if evidence.wanted != wish.id:
        return "it is of something else"
    if evidence.card.target != wish.device:
        return f"it ran on {evidence.card.target or 'no GPU'}, not on {wish.device or 'a processor'}"
    strange = [finding for finding in evidence.findings if not _fits(finding, wish)]
    return f"{strange[0].component}: {strange[0].name}: it is of another artifact" if strange else ""


def _fits(finding: Finding, wish: VerifyWish) -> bool:
    artifact = wish.artifacts.get(finding.component)
    return artifact is not None and finding.sha256 in ("", artifact)


def _keep(
    project: Project, lock: Lock, evidence: Evidence, lender: str, keyid: str, say: Callable[[str], None]
) -> None:
    named = Finding(
        component=evidence.findings[0].component if evidence.findings else lock.components[0].name,
        check=LENT,
        name=f"on a machine of {lender}",
        ok=True,
        detail=_whose(keyid, str(evidence.card)),
        when=evidence.started,
    )
    run = UnderWay(
        "verify",
        project.request,
        project.home,
        say,
        lock=lock,
        run_id=evidence.run,
        origin=f"{LENT} by {lender}",
        variant=project.variant,
    )
    with run as under_way:
        ok = all(finding.ok for finding in evidence.findings)
        findings = [printable(finding) for finding in evidence.findings]
        under_way.ended("verified" if ok else "failed", findings=[*findings, named])
