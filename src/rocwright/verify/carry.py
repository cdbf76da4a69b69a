"""A verification packed to run on another machine: what is built, its checks, and a small root for them."""

from __future__ import annotations

import io
import json
import lzma
import secrets
import shutil
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os.path import lexists
from pathlib import Path
from typing import Any

from rocbase.errors import CheckError, InputError
from rocbase.files.atomic import write_atomic
from rocbase.folders.temporary import temporary_folder
from rocbase.units import size as size_text
from rocwright import sandbox
from rocwright.catalog.folders import DATA
from rocwright.catalog.model import Check
from rocwright.execution.progress import PlainProgress, Progress
from rocwright.execution.runs import UnderWay
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project, built_outputs
from rocwright.records.model import now
from rocwright.sandbox.model import Mount, SandboxJob
from rocwright.sandbox.untrusted import Untrusted
from rocwright.verify.bench.model import measurements
from rocwright.verify.carried import RUNS, CarriedPack, file_of
from rocwright.verify.prepare import CHECK_ROOT, Prepared, made_steps
from rocwright.verify.subject import MODELS, VerifySubject

# The largest pack, in bytes: what may be sent to a machine without a network.
MOST = 45 * 1000**2

# The folder with the programs that a pack is made by and runs by.
PROGRAMS = DATA / "carried"

# Of xz.
PRESET = 6

_COLLECT_SECONDS = 600.0


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
    write_atomic(file_of(project.home, record.pack), record.model_dump_json() + "\n")
    return folder / "run.sh"


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
    if not outcome.ok or not lexists(out / target.name):
        raise CheckError(
            f"what {subject.component.name} needs to run cannot be collected",
            cause=(lines or ["no message"])[-1],
            detail="\n".join(lines[-20:]),
            next_step="rocwright verify shows whether its checks run here",
        )
    Untrusted(out, f"verify/{subject.component.name}").take(target.name, target)


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
