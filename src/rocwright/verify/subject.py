"""One component under test: each kind of check, on its artifact, in the root file system to try it in."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from rocbase.errors import ExplainedError
from rocbase.folders.temporary import temporary_folder
from rocwheel.wheels.canonicalize import form_of
from rocwheel.wheels.emulators import emulator_below
from rocwright import sandbox
from rocwright.catalog.model import Check, Component, EmulatedCheck
from rocwright.catalog.target import Target
from rocwright.execution.runs import LogFile, log_name
from rocwright.model.architecture import described
from rocwright.model.step_environment import EPOCH
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.aliases import base_of
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project
from rocwright.provenance.checks.libraries import LIBRARIES, judged, libraries_in, libraries_needed
from rocwright.provenance.checks.static import look_at, named
from rocwright.records.model import Finding, as_emulated, is_gpu
from rocwright.sandbox.engine import Engine
from rocwright.sandbox.model import GPU_DEVICES, Ended, Mount, SandboxJob, SandboxOutcome
from rocwright.sources.archive import unpack
from rocwright.store.model import Output, Record, verified
from rocwright.verify.emulated import FOLDER, WORDS, Emulation
from rocwright.verify.lines import MARK, device_name, read_line
from rocwright.verify.small_models import LLAMA, MAKERS
from rocwright.verify.suites import lacking, lacks_words, target_names, target_words

# Makes `python3` and its pip the ones of an interpreter that has another name.
_OWN_PYTHON = """{} -m venv --system-site-packages /trial/env
export PATH=/trial/env/bin:$PATH"""

_INSTALL = (
    "python3 -m pip install --quiet --no-deps --no-index --target /trial/site /wheels/*.whl",
    "export PYTHONPATH=/trial/site",
)

# Where a sandbox has models: those that are made here, or a user's model of language.
MODELS, GIVEN = "/model", "/model/given.gguf"

# The name of the finding that has the sha256 of a wheel in canonical form.
FORM = "canonical form"

# What a check may tell, several times what the longest does: the artifact that it tries may speak for it.
MOST_FINDINGS = 10_000

# The argument of a check that becomes what the targets lack, where there is a GPU to run on.
LACKS = "{lacks}"

# The argument of a check that becomes the targets of the lock, to compile for.
TARGETS = "{targets}"


class VerifySubject:
    """One component under test: its artifacts, the root file system to try them in, the sandbox."""

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
        emulation: Emulation | None = None,
        memory: int | None = None,
        model: Path | None = None,
        runs: int = 1,
    ) -> None:
        self.project, self.lock, self.component = project, lock, component
        self.artifacts, self.root, self.engine, self.logs = artifacts, root, engine, logs
        self.wheels = () if wheels is None else wheels.outputs
        self.artifact, self.emulation, self.memory = artifacts[component.name], emulation, memory
        self.model, self.runs = model, runs

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
            verdicts = look_at(check, path, self.lock.request.gpu, self.project.catalog)
        return [self.finding(check, verdict.name, verdict.ok, verdict.detail, "") for verdict in verdicts]

    def wheel(self, check: Check) -> list[Finding]:
        """Whether the wheel is what it says.

        Also the sha256 of its canonical form, by which builds of the same content are known, whoever packed
        them, and whether the libraries that it needs are in the root file system in which it is tried.
        """
        with named(self.project.store, self.artifact) as path:
            (verdict,) = look_at(check, path, self.lock.request.gpu, self.project.catalog)
            form = self._one_form(check, path)
            libraries = self._libraries(check, path)
        return [self.finding(check, verdict.name, verdict.ok, verdict.detail, ""), form, *libraries]

    def _one_form(self, check: Check, path: Path) -> Finding:
        try:
            form = form_of(path, epoch=EPOCH)
        except ExplainedError as error:
            return self.finding(check, FORM, False, f"{error.message}: {error.detail}", "")
        return self.finding(check, FORM, True, f"sha256 {form.sha256}", "")

    def _libraries(self, check: Check, path: Path) -> list[Finding]:
        """Nothing where there is no root file system to run in."""
        if self.root is None:
            return []
        with ExitStack() as stack:
            outputs = (*self.artifacts.values(), *self.wheels)
            siblings = [
                output for output in outputs if output.filename.endswith(".whl") and output != self.artifact
            ]
            paths = [stack.enter_context(named(self.project.store, sibling)) for sibling in siblings]
            try:
                needed = libraries_needed(path, paths)
            except ExplainedError as error:
                return [self.finding(check, LIBRARIES, False, f"{error.message}: {error.cause}", "")]
        built = self.lock.root("build")
        packages = [package.filename.partition("_")[0] for package in built.packages] if built else []
        verdict = judged(needed, self.libraries, packages, self.component.name)
        return [self.finding(check, verdict.name, verdict.ok, verdict.detail, "")]

    @cached_property
    def libraries(self) -> frozenset[str]:
        """The names of the libraries in the root file system."""
        return frozenset() if self.root is None else libraries_in(self.root)

    def script(self, check: Check) -> list[Finding]:
        """Run a program of the catalog on the artifacts, in the run-time root file system."""
        engine = sandbox.pick(self.engine, self.project.home.probes)
        log = LogFile(self.logs / log_name(f"verify/{self.component.name}/{check.name}"))
        findings: list[Finding] = []
        tail: list[str] = []
        emulator = ""

        def on_line(line: str) -> None:
            nonlocal emulator
            log.line(line)
            if line.startswith(MARK):
                if len(findings) < MOST_FINDINGS:
                    findings.append(self._finding_of(check, line, engine.name))
                    if is_gpu(findings[-1].device):
                        emulator = emulator or emulator_below(os.getpid())
                elif len(findings) == MOST_FINDINGS:
                    reason = f"it reports more than {MOST_FINDINGS:,} findings; the others are in its log"
                    findings.append(self.finding(check, check.name, False, reason, "", engine.name))
            elif line.strip():
                tail[:] = [*tail[-5:], line]

        outcome = self.ran(check, engine, on_line)
        log.close()
        if not outcome.ok and all(finding.ok for finding in findings):
            how = "" if outcome.ended is Ended.EXITED else f"{outcome.ended.value}, "
            detail = f"ended with {how}{outcome.code}: {' | '.join(tail)[-400:]}"
            findings.append(self.finding(check, check.name, False, detail, "", engine.name))
        if outcome.ok and not findings:
            # a check without lines of its own speaks by its exit status
            findings.append(self.finding(check, check.name, True, check.why, "cpu", engine.name))
        if isinstance(check, EmulatedCheck) and len(findings) < check.least:
            reason = f"{len(findings)} of at least {check.least} ran"
            findings.append(self.finding(check, check.name, False, reason, "", engine.name))
        # a process that was seen in an emulator told of no GPU before either
        return [as_emulated(finding) for finding in findings] if emulator else findings

    def ran(self, check: Check, engine: Engine, on_line: Callable[[str], None]) -> SandboxOutcome:
        """How a check's program ended, in the sandbox; each line that it prints goes to `on_line`."""
        assert self.root is not None
        with temporary_folder("verify") as folder:
            return sandbox.run(engine, self.job(check, folder), on_line)

    def _finding_of(self, check: Check, line: str, engine: str) -> Finding:
        try:
            report = read_line(line)
            assert report is not None
        except ValueError:
            return self.finding(check, check.name, False, f"cannot be read: {line[:200]}", "", engine)
        device = self.emulation.device if self.emulation else device_name(report.device)
        finding = self.finding(check, report.name, report.ok, report.detail, device, engine)
        return finding.model_copy(update={"absent": report.absent})

    def job(self, check: Check, folder: Path) -> SandboxJob:
        """The program of a check, with all that it sees, laid out in `folder`."""
        work = folder / "work"
        work.mkdir()
        mounts = [Mount(source=self.project.catalog.holder(check.script), target="/catalog")]
        values = {"artifact": "/artifact", "model": GIVEN, "python": "python3", "runs": str(self.runs)}
        interpreter = base_of(self.lock, self.project.catalog)[1].interpreter
        commands = [_OWN_PYTHON.format(interpreter)] if interpreter else []
        if check.wheels:
            outputs = (*self.artifacts.values(), *self.wheels)
            commands += _INSTALL if any(output.filename.endswith(".whl") for output in outputs) else ()
            for output in outputs:
                path = verified(self.project.store, output.sha256)
                mounts.append(Mount(source=path, target=f"/wheels/{output.filename}"))
        elif self.component.kind == "archive":
            path = verified(self.project.store, self.artifact.sha256)
            unpack(path, folder / "artifact", filename=self.artifact.filename, git=True)
            mounts.append(Mount(source=folder / "artifact", target="/artifact"))
        elif self.component.kind == "wheel":
            path = verified(self.project.store, self.artifact.sha256)
            mounts.append(Mount(source=path, target=f"/wheels/{self.artifact.filename}"))
        if check.outputs:
            for output in self._outputs():
                path = verified(self.project.store, output.sha256)
                mounts.append(Mount(source=path, target=f"/outputs/{output.filename}"))
        if check.model and self.model is not None:
            mounts.append(Mount(source=self.model, target=GIVEN))
        elif check.model:
            server = self.component.server
            maker = MAKERS[(server.tiny if server else "") or LLAMA]
            path, companions = maker.make(folder / "model")
            values["model"] = f"{MODELS}/{path.name}"
            values |= {name: f"{MODELS}/{companion.name}" for name, companion in companions.items()}
            mounts.append(Mount(source=folder / "model", target=MODELS))
        env = _environment() | {name: value.format_map(values) for name, value in check.env.items()}
        # a card of this machine is not seen where one is emulated
        devices = tuple(name for name in GPU_DEVICES if Path(name).exists() and not self.emulation)
        # a card may lack what the processor, on which a check runs without one, has
        lacks = lacks_words(self._lacking()) if devices else []
        targets = target_words(target_names(self._targets()))
        many = {LACKS: lacks, TARGETS: targets, WORDS: self.emulation.words if self.emulation else []}
        words = [
            word
            for argument in check.arguments
            for word in (many[argument] if argument in many else [argument.format_map(values)])
        ]
        commands.append(shlex.join(["exec", "python3", f"/catalog/{check.script}", *words]))
        if self.emulation:
            (work / Path(FOLDER).name).mkdir()
            mounts += self.emulation.mounts(folder)
            env |= self.emulation.env
        sandbox.make_writable(work)
        mounts.append(Mount(source=work, target="/trial", writable=True))
        return SandboxJob(
            root=self.root or Path("/"),
            argv=("/bin/sh", "-eu", "-c", "\n".join(commands)),
            env=env,
            workdir="/trial",
            mounts=tuple(mounts),
            memory=self.memory,
            seconds=check.seconds,
            devices=devices,
        )

    def _outputs(self) -> Sequence[Output]:
        """All that the component has made."""
        steps = make_plan(self.lock, self.project.catalog).steps
        step = next(step for step in steps if step.name == self.component.name)
        record = self.project.store.record(step.key)
        return () if record is None else record.outputs

    def _lacking(self) -> dict[str, str]:
        return lacking(self._targets())

    def _targets(self) -> list[Target]:
        return [self.project.catalog.target(gpu) for gpu in self.lock.request.gpu]


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
