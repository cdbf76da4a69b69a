"""Checks and smoke tests of what is built, and the evidence that they leave."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack

from rocbase.errors import CheckError, InputError
from rocbase.files.atomic import sha256_file
from rocwright.catalog.model import Check, Component
from rocwright.execution.progress import PlainProgress, Progress
from rocwright.execution.runs import UnderWay, log_name
from rocwright.model.architecture import described
from rocwright.model.steps import Plan, Step
from rocwright.plan.make import make_plan
from rocwright.plan.packages import RUN_WHEELS
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project, built_outputs, published_wheels
from rocwright.provenance.checks.passed import Passed
from rocwright.provenance.checks.static import CheckNote, named, published
from rocwright.provenance.layout import lay_out
from rocwright.records.model import ANEW, EMULATED, OWN_SHARDS, OWNER, UNTESTED, Finding, StepRun, now
from rocwright.records.opening import read_records
from rocwright.records.read import Records
from rocwright.store.model import Output, Record, Store
from rocwright.store.shared import signers
from rocwright.store.signing.keys import own_public_key, public_key
from rocwright.verify.emulated import Emulation, emulation
from rocwright.verify.lines import outcome_word
from rocwright.verify.prepare import BUILD_ROOT, CHECK_ROOT, Prepared, check_wheels, checked_in, made_steps
from rocwright.verify.subject import VerifySubject


def verify(
    project: Project,
    lock: Lock,
    engine: str | None,
    say: Callable[[str], None],
    progress: Progress | None = None,
    *,
    device: str = "",
    run_id: str = "",
    origin: str = "",
    memory: int | None = None,
) -> list[Finding]:
    """Run every check of every component of the stack and keep the findings as evidence.

    The evidence also has whether all was compiled anew, which channels may ask for. With `device` emulated,
    what recipes have for it runs on an emulated GPU as well, after the emulator's self-test; where that
    fails, nothing is evidence, and it raises CheckError.

    `run_id` and `origin` are as those of `flow.build`; what runs may take `memory` bytes. Raises InputError
    where the stack is not built; a check that fails is a finding, not an error.
    """
    plan = make_plan(lock, project.catalog)
    artifacts = built_outputs(project, plan)
    check_wheels(lock, project)
    passed = Passed(
        home=project.home, store=project.store, catalog=project.catalog, lock=lock, outputs=artifacts
    )
    emulated = emulations(project, lock) if device == EMULATED else []
    findings: list[Finding] = []
    session = UnderWay(
        "verify",
        project.request,
        project.home,
        say,
        lock=lock,
        run_id=run_id,
        origin=origin,
        variant=project.variant,
    )
    with session as under_way:
        # the root of builds has the compiler that the self-test takes
        roots = (*((BUILD_ROOT, RUN_WHEELS) if emulated else ()), *checked_in(plan, project.catalog))
        prepared = Prepared(
            project=project,
            lock=lock,
            artifacts=artifacts,
            made=made_steps(roots, project, plan, under_way, progress or PlainProgress()),
            logs=under_way.folder,
            say=say,
        )

        def tried(subject: VerifySubject, check: Check) -> list[Finding]:
            return _tried(subject, check, under_way, say)

        for emulation in emulated:
            findings += _on_emulated(
                emulation, prepared.subjects(BUILD_ROOT, engine, emulation, memory), tried
            )
        for subject in prepared.subjects(CHECK_ROOT, engine, memory=memory):
            for check in subject.component.check:
                reported = tried(subject, check)
                findings += reported
                passed.note(
                    subject.component.name, check, [CheckNote(it.name, it.ok, it.detail) for it in reported]
                )
        for name, outputs in published_wheels(project, plan).items():
            for check in project.catalog.component(name).check:
                findings += _published(project, lock, name, check, outputs, under_way, say)
        ok = all(finding.ok for finding in findings)
        how = (compiled_anew(project, plan), compiled_by_others(project, plan))
        evidence = [*findings, *(finding for finding in how if finding is not None), *owners(project, plan)]
        evidence += [_untested(lock)] if lock.request.allow_untested else []
        under_way.ended("verified" if ok else "failed", findings=evidence)
    # what waited for these checks is signed now
    lay_out(project, plan, lock, say, anew=False)
    return findings


def _tried(
    subject: VerifySubject, check: Check, under_way: UnderWay, say: Callable[[str], None]
) -> list[Finding]:
    """What a check finds, told and on record."""
    since = time.monotonic()
    step = _begin_step(subject.component, check)
    under_way.note(step)
    say(f"  check {subject.component.name}: {check.name}")
    match check.kind:
        case "machine-code" | "resources":
            findings = subject.code(check)
        case "wheel":
            findings = subject.wheel(check)
        case "script":
            findings = subject.script(check)
    under_way.note(_ended(step, findings, time.monotonic() - since))
    for finding in findings:
        say(f"    {outcome_word(finding):<6} {finding.name}  {finding.detail}")
    return findings


def _published(
    project: Project,
    lock: Lock,
    name: str,
    check: Check,
    outputs: Sequence[Output],
    under_way: UnderWay,
    say: Callable[[str], None],
) -> list[Finding]:
    """What a check finds in wheels that others published, taken together; told and on record."""
    since, component = time.monotonic(), project.catalog.component(name)
    step = _begin_step(component, check)
    under_way.note(step)
    say(f"  check {name}: {check.name}")
    with ExitStack() as stack:
        paths = [stack.enter_context(named(project.store, output)) for output in outputs]
        verdicts = published(check, paths, lock.request.gpu, project.catalog)
    findings = [
        Finding(
            component=name,
            check=check.name,
            name=verdict.name,
            ok=verdict.ok,
            detail=verdict.detail,
            device="",
            artifact=outputs[0].filename,
            sha256=outputs[0].sha256,
            when=now(),
            machine=described(),
        )
        for verdict in verdicts
    ]
    under_way.note(_ended(step, findings, time.monotonic() - since))
    for finding in findings:
        say(f"    {outcome_word(finding):<6} {finding.name}  {finding.detail}")
    return findings


def emulations(project: Project, lock: Lock) -> list[Emulation]:
    """The emulator for each GPU of a lock: a run says the same of all of them. Raises InputError."""
    if not any(project.catalog.component(component.name).emulated for component in lock.components):
        raise InputError(
            f"nothing of {lock.request.stack} runs on an emulated GPU",
            cause="no recipe of it has [[emulated]]",
            next_step="rocwright verify",
        )
    return [emulation(target, project.catalog) for target in lock.request.gpu]


def _on_emulated(
    emulation: Emulation,
    subjects: Sequence[VerifySubject],
    tried: Callable[[VerifySubject, Check], list[Finding]],
) -> list[Finding]:
    """What ran on an emulated GPU, once the emulator computed what the CPU does. Raises CheckError if not."""
    name, first = emulation.emulator.name, subjects[0]
    sha256 = sha256_file(emulation.library)
    fields = {"component": name, "check": "self-test", "artifact": emulation.library.name, "sha256": sha256}
    tested = tried(first, emulation.self_test(first.project.catalog))
    wrong = [finding for finding in tested if not finding.ok]
    if wrong:
        raise CheckError(
            f"{name} for {emulation.target}: self-test fails, no evidence",
            cause="; ".join(f"{finding.name}: {finding.detail}" for finding in wrong),
            next_step=f"install a newer {name} ({'; '.join(emulation.emulator.packages)})",
        )
    identity = tested[0].model_copy(update={"name": "emulator", "detail": emulation.identity})
    findings = [finding.model_copy(update=fields) for finding in (identity, *tested)]
    for subject in subjects:
        for check in subject.component.emulated:
            named = check.model_copy(update={"name": f"{check.name}-{emulation.target}"})
            findings += tried(subject, named)
    return findings


def _begin_step(component: Component, check: Check) -> StepRun:
    name = f"verify/{component.name}/{check.name}"
    return StepRun(
        name=name,
        key="",
        outcome="",
        state="running",
        component=component.name,
        kind="check",
        started=now(),
        log=log_name(name) if check.kind == "script" else "",
    )


def _ended(step: StepRun, findings: Sequence[Finding], seconds: float) -> StepRun:
    bad = [finding for finding in findings if not finding.ok]
    error = (
        CheckError(
            "; ".join(finding.name for finding in bad),
            cause=bad[0].detail,
            next_step="rocwright logs verify shows what the checks printed",
        ).as_dict()
        if bad
        else {}
    )
    return step.model_copy(
        update={
            "state": "ended",
            "outcome": "failed" if bad else "ok",
            "seconds": round(seconds, 3),
            "error": error,
        }
    )


def owners(project: Project, plan: Plan) -> list[Finding]:
    """A finding for each owner that gave the same in every step of a plan that runs commands, where there are
    several: this machine, and the trusted keys that have signed it in a shared store.

    Who used what yet another has compiled does not count, this machine neither.
    """
    steps = [step for step in plan.steps if step.kind == "run"]
    records = [project.store.record(step.key) for step in steps]
    owners_of = [_owners(project.store, record) if record is not None else frozenset() for record in records]
    agreed = frozenset.intersection(*owners_of) if owners_of else frozenset()
    if len(agreed) < 2:
        return []
    return [
        Finding(
            component=steps[-1].component,
            check=OWNER,
            name=f"the same, signed by {keyid[:16]}" if keyid else "the same, built on this machine",
            ok=True,
            when=now(),
        )
        for keyid in sorted(agreed)
    ]


def _owners(store: Store, record: Record) -> frozenset[str]:
    """Who says the same: ids of keys, "" for this machine where it has none."""
    own = own_public_key()
    keyid = str(public_key(own).keyid) if own is not None else ""
    return frozenset(signer or keyid for signer in signers(store, record))


def _untested(lock: Lock) -> Finding:
    """That no source saw what was pinned on this ROCm: no channel takes it."""
    return Finding(
        component=lock.components[0].name,
        check=UNTESTED,
        name="on a ROCm that a source saw it on",
        ok=True,
        absent=True,
        detail=", ".join(f"{name} {pin}" for name, pin in sorted(lock.request.versions.items())),
        when=now(),
    )


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
