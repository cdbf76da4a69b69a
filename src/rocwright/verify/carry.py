"""A verification packed to run on another machine, and what came of it there, taken back as evidence."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import lzma
import secrets
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any

from pydantic import Field, ValidationError

from rocbase.errors import CheckError, InputError
from rocbase.files.atomic import write_atomic
from rocbase.folders.temporary import temporary_folder
from rocbase.model import Frozen, canonical_json
from rocbase.units import size as size_text
from rocwright import sandbox
from rocwright.catalog.folders import DATA
from rocwright.catalog.model import Check
from rocwright.execution.progress import PlainProgress, Progress
from rocwright.execution.runs import UnderWay
from rocwright.home import Home
from rocwright.model.steps import Sha256
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project, built_outputs
from rocwright.records.model import BENCH, Finding, StepRun, now
from rocwright.sandbox.model import Mount, SandboxJob
from rocwright.verify.bench.model import measurements
from rocwright.verify.bench.run import OWN_MODEL, figures_of
from rocwright.verify.lines import MARK, device_name, printable, read_line
from rocwright.verify.prepare import CHECK_ROOT, Prepared, made_steps
from rocwright.verify.subject import MODELS, MOST_FINDINGS, VerifySubject

# The largest pack, in bytes: what may be sent to a machine without a network.
MOST = 45 * 1000**2

# The folder with the programs that a pack is made by and runs by.
PROGRAMS = DATA / "carried"

# Of xz.
PRESET = 6

# How often each figure is measured.
RUNS = 5

# What evidence of another machine has as its engine, and its run as its origin.
CARRIED = "carried"

# A result of more is none that a pack writes.
_LARGEST = 16 * 1024**2
_COLLECT_SECONDS = 600.0


class CarriedPack(Frozen):
    """What a pack was made of, in the home until its result comes back; `key` authenticates that."""

    pack: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    key: Sha256
    packed: str
    stack: str
    artifacts: dict[str, Sha256]


class CarriedCheck(Frozen):
    """One check or measurement there: how it ended, and what it printed."""

    component: str
    check: str
    code: int
    lines: tuple[str, ...] = Field(max_length=MOST_FINDINGS)

    @property
    def tail(self) -> str:
        """Its last words."""
        return " | ".join(line for line in self.lines if not line.startswith(MARK))[-400:]


class CarriedResult(Frozen):
    """What a pack writes: when it ran and for how many seconds, on which machine, with which driver."""

    pack: str
    started: str
    seconds: float
    machine: str
    driver: str
    checks: tuple[CarriedCheck, ...] = Field(max_length=100)
    hmac: Sha256


def pack(
    project: Project,
    lock: Lock,
    folder: Path,
    engine: str | None,
    say: Callable[[str], None],
    progress: Progress | None = None,
) -> Path:
    """Write `run.sh` and what it runs to `folder`: the checks of the stack that run its programs.

    Raises InputError where the stack is not built, has no such check, or more than `MOST` bytes would have to
    be carried, and what making the root file system of the checks raises.
    """
    subject, checks = _subject(project, lock, engine, say, progress)
    folder.mkdir(parents=True, exist_ok=True)
    record = CarriedPack(
        pack=secrets.token_hex(16),
        key=secrets.token_hex(32),
        packed=now(),
        stack=lock.request.stack,
        artifacts={subject.component.name: subject.artifact.sha256},
    )
    with temporary_folder("carry") as scratch:
        root, jobs = Path(scratch) / "root.tar", list[SandboxJob]()
        for number, check in enumerate(checks):
            place = Path(scratch) / str(number)
            place.mkdir()
            jobs.append(subject.job(check, place))
        _collect(subject, checks, jobs, root, engine)
        words = [_words(subject, check, job) for check, job in zip(checks, jobs, strict=True)]
        request = {"pack": record.pack, "key": record.key, "jobs": words}
        packed = Path(scratch) / "carry.tar.xz"
        _compress(PROGRAMS, root, request, packed)
        if packed.stat().st_size > MOST:
            raise InputError(
                f"{size_text(packed.stat().st_size)} would have to be carried",
                cause=f"{subject.artifact.filename} and what it needs take more than {size_text(MOST)}",
                next_step=f"rocwright verify {lock.request.stack}, on a machine with the card and a network",
            )
        shutil.copyfile(packed, folder / packed.name)
    shutil.copyfile(PROGRAMS / "run.sh", folder / "run.sh")
    write_atomic(_file_of(project.home, record.pack), record.model_dump_json() + "\n")
    return folder / "run.sh"


def take_back(project: Project, lock: Lock, file: Path, say: Callable[[str], None]) -> list[Finding]:
    """Put what a pack found on record here. Raises InputError for a result that cannot be read, and
    CheckError for one that was edited, of another artifact, or older than what was packed."""
    result, record = _read(project.home, file)
    outputs = built_outputs(project, make_plan(lock, project.catalog))
    current = {name: outputs[name].sha256 for name in record.artifacts if name in outputs}
    if current != record.artifacts:
        raise _refused(file, "it is of another artifact", "the stack was built anew since it was packed")
    if result.started < record.packed:
        raise _refused(
            file,
            "it is older than the artifact",
            f"it says that it ran at {result.started}, and was packed at {record.packed}",
        )
    filenames = {name: output.filename for name, output in outputs.items()}
    measured = {measurement.name: measurement for measurement in measurements()}
    verified = [check for check in result.checks if check.check not in measured]
    findings = [finding for check in verified for finding in _findings(check, result, record, filenames)]
    with UnderWay("verify", project.request, project.home, say, lock=lock, origin=CARRIED) as under_way:
        ok = all(finding.ok for finding in findings)
        for check in verified:
            under_way.note(_step(check, result, "check"))
        under_way.ended("verified" if ok else "failed", findings=findings)
    benches = [check for check in result.checks if check.check in measured and check.code == 0]
    with UnderWay(BENCH, project.request, project.home, say, lock=lock) as under_way:
        for check in benches:
            figures = figures_of(measured[check.check], check.lines, RUNS, OWN_MODEL, _machine(result), say)
            step = _step(check, result, BENCH)
            under_way.note(step.model_copy(update={"measured": tuple(figures)}))
            for figure in figures:
                say(f"  bench {figure.name}: {median(figure.values):,.1f} {figure.unit} on {figure.device}")
        under_way.ended("measured")
    return findings


def _step(check: CarriedCheck, result: CarriedResult, kind: str) -> StepRun:
    return StepRun(
        name=f"{'verify' if kind == 'check' else kind}/{check.component}/{check.check}",
        key="",
        outcome="failed" if check.code else "ok",
        state="ended",
        component=check.component,
        kind=kind,
        started=result.started,
    )


def _machine(result: CarriedResult) -> str:
    return ", ".join(part for part in (result.machine, result.driver) if part)


def _subject(
    project: Project, lock: Lock, engine: str | None, say: Callable[[str], None], progress: Progress | None
) -> tuple[VerifySubject, list[Check]]:
    """The component that is carried, in the root file system of its checks, and these."""
    plan = make_plan(lock, project.catalog)
    artifacts = built_outputs(project, plan)
    with UnderWay("carry", project.request, project.home, say, lock=lock) as under_way:
        records = made_steps((CHECK_ROOT,), project, plan, under_way, progress or PlainProgress())
        prepared = Prepared(
            project=project, lock=lock, artifacts=artifacts, made=records, logs=under_way.folder, say=say
        )
        under_way.ended("built")
    for subject in prepared.subjects(CHECK_ROOT, engine, runs=RUNS):
        checks = [check for check in subject.component.check if check.kind == "script" and not check.wheels]
        name = subject.component.name
        checks += [it for it in measurements() if name in it.components and not it.wheels] if checks else []
        # they are packed from one folder of the catalog
        holder = project.catalog.holder
        checks = [check for check in checks if holder(check.script) == holder(checks[0].script)]
        if checks and subject.component.kind == "archive" and subject.root is not None:
            return subject, checks
    raise InputError(
        f"nothing of {lock.request.stack} is carried",
        cause="only programs in an archive are, whose checks run them: wheels and ROCm are too large",
        next_step="rocwright verify --suite torch, on the machine with the card",
    )


def _collect(
    subject: VerifySubject,
    checks: Sequence[Check],
    jobs: Sequence[SandboxJob],
    target: Path,
    engine: str | None,
) -> None:
    """Write the small root file system of checks to `target`, as a tar, from within their own; each of their
    `jobs` may see other things."""
    out = target.parent / "out"
    out.mkdir()
    sandbox.make_writable(out)
    folders = ["/artifact", *sorted({f"/catalog/{Path(check.script).parent}" for check in checks})]
    shown = {mount.target: mount for job in jobs for mount in job.mounts}
    folders += [place for place in shown if place.startswith(MODELS)]
    mounts = (
        *shown.values(),
        Mount(source=PROGRAMS, target="/carried"),
        Mount(source=out, target="/out", writable=True),
    )
    argv = ("python3", "/carried/collect.py", f"/out/{target.name}", *folders)
    collecting = replace(jobs[0], argv=argv, mounts=mounts, seconds=_COLLECT_SECONDS, devices=())
    lines: list[str] = []
    outcome = sandbox.run(sandbox.pick(engine, subject.project.home.probes), collecting, lines.append)
    tar = out / target.name
    if not outcome.ok or tar.is_symlink() or not tar.is_file():
        raise CheckError(
            f"what {subject.component.name} needs to run cannot be collected",
            cause=(lines or ["no message"])[-1],
            detail="\n".join(lines[-20:]),
            next_step="rocwright verify shows whether its checks run here",
        )
    tar.rename(target)


def _words(subject: VerifySubject, check: Check, job: SandboxJob) -> dict[str, Any]:
    return {
        "component": subject.component.name,
        "check": check.name,
        "argv": list(job.argv),
        "env": dict(job.env),
        "workdir": job.workdir,
        "seconds": check.seconds,
    }


def _compress(programs: Path, root: Path, request: Mapping[str, Any], target: Path) -> None:
    """The program that runs there and what it is to run, before the root as collected, which is not read."""
    (root.parent / "jobs.json").write_text(json.dumps(request))
    head = io.BytesIO()
    with tarfile.open(fileobj=head, mode="w") as tar:
        for name in ("carry", "tmp", "trial", "run"):
            member = tarfile.TarInfo(f"root/{name}")
            member.type, member.mode = tarfile.DIRTYPE, 0o777
            tar.addfile(member)
        for path in (root.parent / "jobs.json", programs / "run.py"):
            tar.add(path, arcname=f"root/carry/{path.name}")
        end = tar.offset
    with root.open("rb") as plain, lzma.open(target, "wb", preset=PRESET) as packed:
        # without the blocks that end a tar
        packed.write(head.getvalue()[:end])
        shutil.copyfileobj(plain, packed, 1024**2)


def _file_of(home: Home, name: str) -> Path:
    return home.carried / f"{name}.json"


def _read(home: Home, file: Path) -> tuple[CarriedResult, CarriedPack]:
    """A result, and the pack that it is of."""
    try:
        if file.stat().st_size > _LARGEST:
            raise ValueError("it is larger than any result")
        document = json.loads(file.read_bytes())
        result = CarriedResult.model_validate(document)
    except (OSError, ValueError, RecursionError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise InputError(
            f"{file} is no result of a carried verification",
            cause=reason.splitlines()[0][:300] if reason else type(error).__name__,
            next_step="name the result.json that run.sh wrote",
        ) from error
    packs = {path.stem: path for path in home.carried.glob("*.json")}
    if result.pack not in packs:
        raise InputError(
            f"{file} is of a pack that was not made here",
            cause="the home folder that packed it has its key, and this one has not",
            next_step="take it back where rocwright verify --carry was called",
        )
    record = CarriedPack.model_validate_json(packs[result.pack].read_bytes())
    content = canonical_json({name: value for name, value in document.items() if name != "hmac"})
    seal = hmac.new(bytes.fromhex(record.key), content, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(seal, result.hmac):
        raise _refused(file, "it was edited", "its content is not what the pack wrote")
    return result, record


def _refused(file: Path, reason: str, cause: str) -> CheckError:
    return CheckError(
        f"{file} is not taken as evidence: {reason}",
        cause=f"{cause}; evidence on record is as before",
        next_step="rocwright verify STACK --carry FOLDER packs it anew",
    )


def _findings(
    check: CarriedCheck,
    result: CarriedResult,
    record: CarriedPack,
    filenames: Mapping[str, str],
) -> Iterator[Finding]:
    """The findings of a check; one that says nothing of its failure gets one."""
    if check.component not in record.artifacts:
        raise InputError(
            f"the result names {check.component}, which was not packed",
            cause="it was not written by the pack",
            next_step="rocwright verify STACK --carry FOLDER packs it anew",
        )
    about = Finding(
        component=check.component,
        check=check.check,
        name=check.check,
        ok=check.code == 0,
        detail=f"ended with {check.code}: {check.tail}" if check.code else "",
        artifact=filenames[check.component],
        sha256=record.artifacts[check.component],
        when=result.started,
        machine=_machine(result),
        engine=CARRIED,
    )
    reported = []
    for line in (line for line in check.lines if line.startswith(MARK)):
        try:
            report = read_line(line)
        except ValueError:
            report = None
        if report is None:
            fields = {"ok": False, "detail": f"cannot be read: {line.removeprefix(MARK)[:200]}"}
        else:
            fields = {
                "name": report.name,
                "ok": report.ok,
                "detail": report.detail,
                "device": device_name(report.device),
                "absent": report.absent,
            }
        reported.append(printable(about.model_copy(update=fields)))
    if not reported or (check.code and all(finding.ok for finding in reported)):
        reported.append(printable(about))
    yield from reported
