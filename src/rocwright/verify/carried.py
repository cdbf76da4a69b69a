"""What came of a carried verification on another machine, taken back as evidence."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Annotated

from pydantic import Field, ValidationError

from rocbase.errors import CheckError, InputError
from rocbase.files.atomic import write_atomic
from rocbase.model import Frozen, canonical_json
from rocwright.execution.runs import UnderWay
from rocwright.home import Home
from rocwright.model.steps import Sha256
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project, built_outputs
from rocwright.records.model import BENCH, Finding, StepRun
from rocwright.verify.bench.model import Measurement, measurements
from rocwright.verify.bench.run import OWN_MODEL, figures_of
from rocwright.verify.lines import MARK, device_name, printable, read_line
from rocwright.verify.subject import MOST_FINDINGS

# How often each figure is measured.
RUNS = 5

# What evidence of another machine has as its engine, and its run as its origin.
CARRIED = "carried"

# A result of more is none that a pack writes.
_LARGEST = 16 * 1024**2


class CarriedPack(Frozen):
    """What a pack was made of: `key` authenticates its results, of which `taken` are on record here."""

    pack: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    key: Sha256
    packed: str
    stack: str
    artifacts: dict[str, Sha256]
    taken: tuple[Sha256, ...] = ()


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


def take_back(
    project: Project, lock: Lock, file: Path, say: Callable[[str], None], *, run_id: str = ""
) -> list[Finding]:
    """Put what a pack found on record here, as the run `run_id`.

    Raises InputError for a result that cannot be read, and CheckError for one that was edited, taken before,
    of another artifact, or older than the pack.
    """
    result, record = _read(project.home, file)
    if result.hmac in record.taken:
        raise _refused(file, "it was taken before", "a result counts once")
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
    run = UnderWay("verify", project.request, project.home, say, lock=lock, origin=CARRIED, run_id=run_id)
    with run as under_way:
        ok = all(finding.ok for finding in findings)
        for check in verified:
            under_way.note(_step(check, result, "check"))
        under_way.ended("verified" if ok else "failed", findings=findings)
    with UnderWay(BENCH, project.request, project.home, say, lock=lock) as under_way:
        for check in result.checks:
            if check.check in measured:
                under_way.note(_measured(check, measured[check.check], result, say))
        under_way.ended("measured")
    taken = record.model_copy(update={"taken": (*record.taken, result.hmac)})
    write_atomic(file_of(project.home, record.pack), taken.model_dump_json() + "\n")
    return findings


def _measured(
    check: CarriedCheck, measurement: Measurement, result: CarriedResult, say: Callable[[str], None]
) -> StepRun:
    """A measurement with its figures; one that failed is told."""
    step = _step(check, result, BENCH)
    try:
        if check.code:
            raise CheckError(
                f"{check.check} was not measured",
                cause=f"it ended with {check.code}: {check.tail}",
                next_step="rocwright bench, on a machine with the card",
            )
        figures = figures_of(measurement, check.lines, RUNS, OWN_MODEL, _machine(result), say)
    except CheckError as error:
        say(f"  bench {error.message}: {error.cause}")
        return step.model_copy(update={"outcome": "failed", "error": error.as_dict()})
    for figure in figures:
        say(f"  bench {figure.name}: {median(figure.values):,.1f} {figure.unit} on {figure.device}")
    return step.model_copy(update={"measured": tuple(figures)})


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


def file_of(home: Home, name: str) -> Path:
    """Where the home has the record of a pack, by its name."""
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
