"""Checks and smoke tests of what is built, and the evidence that they leave."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from rocbase.errors import CheckError, InputError
from rocbase.files.atomic import sha256_file
from rocwright.catalog.model import Check, Component
from rocwright.execution.progress import PlainProgress, Progress
from rocwright.execution.runs import UnderWay, log_name
from rocwright.model.architecture import described
from rocwright.plan.make import make_plan
from rocwright.plan.packages import RUN_WHEELS
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project, built_outputs, published_wheels
from rocwright.provenance.checks.passed import Passed
from rocwright.provenance.checks.static import CheckNote, named, published
from rocwright.provenance.layout import lay_out
from rocwright.records.model import EMULATED, Finding, StepRun, now
from rocwright.store.model import Output
from rocwright.verify.anew import compiled_anew, compiled_by_others
from rocwright.verify.emulated import Emulation, emulation
from rocwright.verify.lines import outcome_word
from rocwright.verify.owners import owners
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
