"""Checks and smoke tests of what is built, and the evidence that they leave."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rocwheel.errors import CheckError, InputError, RocwrightError
from rocwheel.folders.temporary import temporary_folder
from rocwheel.wheels.canonicalize import form_of
from rocwright import sandbox
from rocwright.bases.roots import unpacked_root
from rocwright.catalog.model import Check, Component
from rocwright.checks.passed import Passed
from rocwright.checks.static import Seen, look_at, named
from rocwright.execution.disk import check_room
from rocwright.execution.estimate import expected
from rocwright.execution.options import Options
from rocwright.execution.progress import PlainProgress, Progress
from rocwright.execution.runs import LogFile, UnderWay, log_name
from rocwright.farm.executors import run_steps
from rocwright.machine.architecture import described
from rocwright.model.step_environment import EPOCH
from rocwright.model.steps import Plan
from rocwright.plan.decide import State, decide
from rocwright.plan.make import make_plan
from rocwright.plan.packages import RUN_WHEELS
from rocwright.project import Project, built_outputs
from rocwright.provenance.layout import lay_out
from rocwright.records.model import Finding, StepRun, now
from rocwright.resolve.aliases import base_of
from rocwright.resolve.model import Lock
from rocwright.sandbox.model import Ended, Job, Mount
from rocwright.sources.archive import unpack
from rocwright.store.model import Output, Record
from rocwright.verify.anew import compiled_anew
from rocwright.verify.lines import MARK, outcome_word, read_line
from rocwright.verify.suites import lacking, lacks_words
from rocwright.verify.tiny_gguf import write_tiny_model

CHECK_ROOT = "root/check"

GPU_DEVICES = ("/dev/kfd", "/dev/dri")

_OWN_PYTHON = """{} -m venv --system-site-packages /trial/env
export PATH=/trial/env/bin:$PATH"""
"""Makes `python3` and its pip the ones of an interpreter that has another name."""

MOST_FINDINGS = 10_000
"""What a check may tell, several times what the longest does: the artifact that it tries may speak for it."""

LACKS = "{lacks}"
"""The argument of a check that becomes what the targets lack, where there is a GPU to run on."""


def verify(
    project: Project,
    lock: Lock,
    engine: str | None,
    say: Callable[[str], None],
    progress: Progress | None = None,
    *,
    run_id: str = "",
    origin: str = "",
) -> list[Finding]:
    """Run every check of every component of the stack and keep the findings as evidence.

    The evidence also has whether all was compiled anew, which channels may ask for.

    `run_id` and `origin` are as those of `flow.build`. Raises InputError where the stack is not built; a
    check that fails is a finding, not an error.
    """
    plan = make_plan(lock, project.catalog)
    artifacts = built_outputs(project, plan)
    _check_wheels(lock, project)
    passed = Passed(
        home=project.home, store=project.store, catalog=project.catalog, lock=lock, outputs=artifacts
    )
    findings: list[Finding] = []
    asked = UnderWay(
        "verify",
        project.request,
        project.home,
        say,
        lock=lock,
        run_id=run_id,
        origin=origin,
        variant=project.variant,
    )
    with asked as under_way:
        made = _made(project, plan, under_way, progress or PlainProgress())
        root = None if (held := made.get(CHECK_ROOT)) is None else _unpacked(project, held, say)
        wheels = made.get(RUN_WHEELS)
        for locked in lock.components:
            component = project.catalog.component(locked.name)
            for check in component.check:
                since = time.monotonic()
                begun = _begun(component, check)
                under_way.note(begun)
                say(f"  check {component.name}: {check.name}")
                bench = _Bench(project, lock, component, artifacts, root, wheels, engine, under_way.folder)
                match check.kind:
                    case "machine-code" | "resources":
                        found = bench.code(check)
                    case "wheel":
                        found = bench.wheel(check)
                    case "script":
                        found = bench.script(check)
                findings += found
                passed.note(component.name, check, [Seen(one.name, one.ok, one.detail) for one in found])
                under_way.note(_ended(begun, found, time.monotonic() - since))
                for one in found:
                    say(f"    {outcome_word(one):<6} {one.name}  {one.detail}")
        ok = all(one.ok for one in findings)
        anew = compiled_anew(project, plan)
        evidence = [*findings, *([anew] if anew else [])]
        under_way.ended("verified" if ok else "failed", findings=evidence)
    # what waited for these checks is signed now
    lay_out(project, plan, lock, say, anew=False)
    return findings


def _begun(component: Component, check: Check) -> StepRun:
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


def _ended(begun: StepRun, found: Sequence[Finding], seconds: float) -> StepRun:
    bad = [one for one in found if not one.ok]
    error = (
        CheckError(
            "; ".join(one.name for one in bad),
            cause=bad[0].detail,
            next_step="rocwright logs verify shows what the checks printed",
        ).as_dict()
        if bad
        else {}
    )
    return begun.model_copy(
        update={
            "state": "ended",
            "outcome": "failed" if bad else "ok",
            "seconds": round(seconds, 3),
            "error": error,
        }
    )


def _check_wheels(lock: Lock, project: Project) -> None:
    """Raises InputError where the lock does not say what checks install beside the wheels that were built."""
    wants = [one.name for one in lock.components if project.catalog.component(one.name).python_run]
    if wants and lock.python_run is None:
        raise InputError(
            "the lock has no Python packages for the checks",
            cause=f"it was made before {', '.join(wants)} named those that it requires when it is imported",
            next_step="rocwright lock: everything else in it stays as it is",
        )


def _made(project: Project, plan: Plan, under_way: UnderWay, progress: Progress) -> dict[str, Record]:
    """The root file system of checks and the wheels that they install, made where they are not there yet."""
    steps = [one for one in plan.steps if one.name in (CHECK_ROOT, RUN_WHEELS)]
    if not steps:
        return {}
    decisions = decide(plan, project.store, wanted=tuple(one.name for one in steps))
    if any(one.state is State.RUN for one in decisions):
        check_room(decisions, project.home)
        with progress:
            told = run_steps(
                decisions,
                project.store,
                project.home,
                Options(),
                under_way.folder,
                expected(project, decisions),
                progress,
                under_way,
            )
        if told.failures:
            raise told.failures[0][1]
    records = {one.name: project.store.record(one.key) for one in steps}
    return {name: record for name, record in records.items() if record is not None}


def _unpacked(project: Project, record: Record, say: Callable[[str], None]) -> Path:
    return unpacked_root(project.store, record.output("root").sha256, project.home.roots, say)


class _Bench:
    """One component on the bench: its artifacts, the root file system to try them in, the sandbox."""

    def __init__(
        self,
        project: Project,
        lock: Lock,
        component: Component,
        artifacts: dict[str, Output],
        root: Path | None,
        wheels: Record | None,
        engine: str | None,
        logs: Path,
    ) -> None:
        self.project, self.lock, self.component = project, lock, component
        self.artifacts, self.root, self.engine, self.logs = artifacts, root, engine, logs
        self.wheels = () if wheels is None else wheels.outputs
        self.artifact = artifacts[component.name]

    def finding(
        self, check: Check, name: str, ok: bool, detail: str, device: str, engine: str = ""
    ) -> Finding:
        return Finding(
            component=self.component.name,
            check=check.name,
            name=name,
            ok=ok,
            detail=detail,
            device=device,
            artifact=self.artifact.filename,
            sha256=self.artifact.sha256,
            when=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            machine=described(),
            engine=engine,
        )

    def code(self, check: Check) -> list[Finding]:
        """What the machine code in the artifact is for, or what its kernels take of the GPU."""
        with named(self.project.store, self.artifact) as path:
            found = look_at(check, path, self.lock.request.gpu, self.project.catalog)
        return [self.finding(check, one.name, one.ok, one.detail, "") for one in found]

    def wheel(self, check: Check) -> list[Finding]:
        """Whether the wheel is what it says.

        Also its hash in its one form, by which builds of the same content are known, whoever packed them.
        """
        with named(self.project.store, self.artifact) as path:
            (found,) = look_at(check, path, self.lock.request.gpu, self.project.catalog)
            form = self._one_form(check, path)
        return [self.finding(check, found.name, found.ok, found.detail, ""), form]

    def _one_form(self, check: Check, path: Path) -> Finding:
        try:
            form = form_of(path, epoch=EPOCH)
        except RocwrightError as error:
            return self.finding(check, "one form", False, f"{error.message}: {error.detail}", "")
        return self.finding(check, "one form", True, f"sha256 {form.sha256}", "")

    def script(self, check: Check) -> list[Finding]:
        """Run a program of the catalog on the artifacts, in the run-time root file system."""
        assert self.root is not None
        engine = sandbox.pick(self.engine, self.project.home.probes)
        log = LogFile(self.logs / log_name(f"verify/{self.component.name}/{check.name}"))
        findings: list[Finding] = []
        tail: list[str] = []

        def on_line(line: str) -> None:
            log.line(line)
            if line.startswith(MARK):
                if len(findings) < MOST_FINDINGS:
                    findings.append(self._told(check, line, engine.name))
                elif len(findings) == MOST_FINDINGS:
                    why = f"it reports more than {MOST_FINDINGS:,} findings; the others are in its log"
                    findings.append(self.finding(check, check.name, False, why, "", engine.name))
            elif line.strip():
                tail[:] = [*tail[-5:], line]

        with temporary_folder("verify") as folder:
            outcome = sandbox.run(engine, self._job(check, folder), on_line)
        log.close()
        if not outcome.ok and all(one.ok for one in findings):
            how = "" if outcome.ended is Ended.EXITED else f"{outcome.ended.value}, "
            detail = f"ended with {how}{outcome.code}: {' | '.join(tail)[-400:]}"
            findings.append(self.finding(check, check.name, False, detail, "", engine.name))
        if outcome.ok and not findings:
            # a check without lines of its own speaks by its exit status
            findings.append(self.finding(check, check.name, True, check.why, "cpu", engine.name))
        return findings

    def _told(self, check: Check, line: str, engine: str) -> Finding:
        try:
            told = read_line(line)
            assert told is not None
        except ValueError:
            return self.finding(check, check.name, False, f"cannot be read: {line[:200]}", "", engine)
        found = self.finding(check, told.name, told.ok, told.detail, told.device, engine)
        return found.model_copy(update={"absent": told.absent})

    def _job(self, check: Check, folder: Path) -> Job:
        work = folder / "work"
        work.mkdir()
        mounts = [Mount(source=self.project.catalog.holder(check.script), target="/catalog")]
        values = {"artifact": "/artifact", "model": "/model/tiny.gguf", "python": "python3"}
        interpreter = base_of(self.lock, self.project.catalog)[1].interpreter
        commands = [_OWN_PYTHON.format(interpreter)] if interpreter else []
        if check.wheels:
            commands += [
                "python3 -m pip install --quiet --no-deps --no-index --target /trial/site /wheels/*.whl",
                "export PYTHONPATH=/trial/site",
            ]
            for output in (*self.artifacts.values(), *self.wheels):
                path = self.project.store.verified(output.sha256)
                mounts.append(Mount(source=path, target=f"/wheels/{output.filename}"))
        elif self.component.kind == "archive":
            path = self.project.store.verified(self.artifact.sha256)
            unpack(path, folder / "artifact", filename=self.artifact.filename, git=True)
            mounts.append(Mount(source=folder / "artifact", target="/artifact"))
        if check.model:
            (folder / "model").mkdir()
            write_tiny_model(folder / "model" / "tiny.gguf")
            mounts.append(Mount(source=folder / "model", target="/model"))
        devices = tuple(name for name in GPU_DEVICES if Path(name).exists())
        # a card may lack what the processor, on which a check runs without one, has
        lacks = lacks_words(self._lacking()) if devices else []
        words = [
            word for one in check.arguments for word in (lacks if one == LACKS else [one.format_map(values)])
        ]
        commands.append(shlex.join(["exec", "python3", f"/catalog/{check.script}", *words]))
        sandbox.make_writable(work)
        mounts.append(Mount(source=work, target="/trial", writable=True))
        return Job(
            root=self.root or Path("/"),
            argv=("/bin/sh", "-eu", "-c", "\n".join(commands)),
            env=_environment() | {name: value.format_map(values) for name, value in check.env.items()},
            workdir="/trial",
            mounts=tuple(mounts),
            seconds=check.seconds,
            devices=devices,
        )

    def _lacking(self) -> dict[str, str]:
        return lacking([self.project.catalog.target(one) for one in self.lock.request.gpu])


def _environment() -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/trial",
        "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
        "XDG_CACHE_HOME": "/tmp/cache",  # noqa: S108
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
