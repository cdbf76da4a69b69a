"""What is on record: runs with their steps, findings, artifacts, the cells of the matrix, channels."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import Field

from rocbase.model import Frozen
from rocwright.model.steps import FileName

State = Literal["queued", "running", "ended"]

Said = Literal[
    "checked against source",
    "rehearsed",
    "built",
    "checked without a GPU",
    "ran in software",
    "ran on an emulated GPU",
    "ran on a GPU of another maker",
    "ran on a GPU",
]
# What evidence can say, each more than the one before it.
SAID: tuple[Said, ...] = get_args(Said)

# The kind of what is noted of a rehearsal beside its steps: each part, with how much of it was tried.
REHEARSAL = "rehearsal"

# The origin of a run that tries a lock for its failure: it says nothing of what its cell holds.
BISECT = "bisect"

# The command of a run that tried somebody's environment, which is no cell of the matrix.
SUITE = "suite"


# The command of a run that measured what is built, and the kind of its steps.
BENCH = "bench"

Better = Literal["higher", "lower"]


class Figure(Frozen):
    """One thing measured: a value for each run, of which higher or lower is better.

    `device` is where it ran, `machine` the processor beside it, `model` which model of language it read.
    """

    name: str
    unit: str
    better: Better
    values: Annotated[tuple[float, ...], Field(min_length=1)]
    device: str = ""
    machine: str = ""
    model: str = ""


class StepRun(Frozen):
    """How a step went in a run: built, reused (inputs were identical), failed, skipped after a failure, ok
    (of a check), stopped or killed; "" while it is queued or running.

    "again" is a try that ran out of memory: how the second one ended comes after it, in the same log. `needs`
    are the names of the steps that it waits for, `log` is a file in the run's folder. `seconds` is wall time,
    `started` UTC; `memory` is the most that it was allowed, `peak_memory` the most that it took, in bytes;
    `counted` is how many things ninja or make counted in all; `paused` how many seconds any of its processes
    was stopped for memory, `least_jobs` and `most_jobs` how many it had at a time; `resumed` how often it
    went on in the tree of an attempt that was cut short, 0 where it started clean; `tried` is how many of
    what is `counted` a rehearsal has tried; `measured` is what a bench found.
    """

    name: str
    key: str
    outcome: str
    seconds: float = 0
    log: FileName | Literal[""] = ""
    error: dict[str, str] = {}
    engine: str = ""
    jobs: int = 0
    memory: int | None = None
    peak_memory: int | None = None
    compiler_cache: dict[str, int] = {}
    counted: int = 0
    paused: float = 0
    least_jobs: int = 0
    most_jobs: int = 0
    resumed: int = 0
    tried: int = 0
    measured: tuple[Figure, ...] = ()
    state: State = "ended"
    component: str = ""
    kind: str = ""
    started: str = ""
    needs: tuple[str, ...] = ()

    @property
    def failure(self) -> str:
        """The class of its failure, or ""."""
        return self.error.get("class", "internal") if self.outcome == "failed" else ""

    @property
    def issue(self) -> str:
        """The known issue that explains its failure, or ""."""
        return self.error.get("issue", "")

    @property
    def cached(self) -> float:
        """The part of its compilations that the compiler cache had, 0 to 1."""
        hits, all_ = self.compiler_cache.get("hit", 0), sum(self.compiler_cache.values())
        return hits / all_ if all_ else 0


class Run(Frozen):
    """One `build`, `verify` or `rehearse`: when, what was asked, what of it did not come from the store.

    `number` orders runs by their begin, whatever the clock said; 0 before it is on record. `outcome` is
    built, verified, rehearsed, failed, stopped or killed, "" before the end. `origin` says who asked, where
    it was not a person at a shell ("cycle ID", ...). `variant` is what was asked for beside stack, GPUs and
    base. `lock` is the lock's sha256, `versions` what it chose. `said` is what the run is evidence of,
    `device` where it ran. `failure` and `issue` are those of its first failure. `machine` and `process` say
    who runs it.
    """

    id: FileName
    command: str
    started: str
    seconds: float
    stack: str
    gpu: tuple[str, ...]
    base: str
    outcome: str
    cached: int = 0
    steps: tuple[StepRun, ...] = ()
    state: State = "ended"
    number: int = 0
    ended: str = ""
    origin: str = ""
    lock: str = ""
    variant: str = ""
    versions: dict[str, str] = {}
    machine: str = ""
    process: str = ""
    rocwright: str = ""
    said: Said | Literal[""] = ""
    device: str = ""
    failure: str = ""
    issue: str = ""


class Finding(Frozen):
    """One statement found true or false. `device` is where it ran: a GPU's name, cpu, "" if nothing ran.

    `absent`: what it would have tried is not there, so that nothing was proved, and nothing is wrong.
    """

    component: str
    check: str
    name: str
    ok: bool
    absent: bool = False
    detail: str = ""
    device: str = ""
    artifact: str = ""
    sha256: str = ""
    when: str = ""
    machine: str = ""
    engine: str = ""


class Artifact(Frozen):
    """A finished output of a run; `size` in bytes. The last five are told when it is read."""

    component: str
    step: str
    filename: str
    sha256: str
    size: int
    run: str = ""
    stack: str = ""
    gpu: tuple[str, ...] = ()
    base: str = ""
    at: str = ""


class Promotion(Frozen):
    """A run that became what a channel holds for a cell: since when, by whom, and why."""

    stack: str
    gpu: str
    base: str
    channel: str
    run: str
    lock: str = ""
    at: str = ""
    by: str = ""
    why: str = ""
    variant: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a step used `at` so many seconds after the run's begin: bytes, and processes that did its work."""

    step: str
    at: float
    memory: int
    processes: int


class RunOutcome(Frozen):
    """All that a run leaves; `lock` is the lock as JSON, whose sha256 the run has."""

    run: Run
    lock: str = ""
    findings: tuple[Finding, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    samples: tuple[Sample, ...] = ()


class NewestEvidence(NamedTuple):
    """The newest run that said something of a cell, or the newest promotion; `number` orders them."""

    run: str
    at: str
    device: str
    detail: str
    number: int


class Cell(NamedTuple):
    """A stack on a GPU and a base: how its newest run ended, what was ever seen, what its channels hold.

    `variant` is what is asked for beside these, "" where that is nothing: the provider, optional components,
    pins. `seen` has the words of evidence, `channels` the names of channels; `whole_seconds` is what the
    newest build took that found nothing of it in the store.
    """

    stack: str
    gpu: str
    base: str
    variant: str
    run: str
    command: str
    outcome: str
    at: str
    failure: str
    issue: str
    whole_seconds: float | None
    seen: dict[Said, NewestEvidence]
    channels: dict[str, NewestEvidence]

    @property
    def said(self) -> Said | Literal[""]:
        """The most that was ever seen."""
        return max(self.seen, key=SAID.index, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Which runs: all that is given must hold. `variant` may be "", that of the plain ones. `step` is a
    step's name, or the part before a slash; `since` and `until` are UTC, ISO 8601; `before` is a number: the
    page after the run that has it."""

    stack: str = ""
    gpu: str = ""
    base: str = ""
    command: str = ""
    state: str = ""
    outcome: str = ""
    failure: str = ""
    issue: str = ""
    step: str = ""
    origin: str = ""
    lock: str = ""
    since: str = ""
    until: str = ""
    before: int = 0
    variant: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAt:
    """A step in a run of the past."""

    run: str
    at: str
    stack: str
    gpu: tuple[str, ...]
    base: str
    step: StepRun
    lock: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """What a step of a stack took when it was last built: seconds, with so many jobs, bytes.

    `cached` is the part of the compilations that the compiler cache had, 0 to 1.
    """

    stack: str
    name: str
    seconds: float
    jobs: int
    peak_memory: int | None
    cached: float
    counted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """A known issue, or a class of failure that nobody knows yet: in how many runs, and the newest."""

    issue: str
    failure: str
    runs: int
    run: str
    at: str


def new_run_id() -> str:
    """A name that sorts by time."""
    return f"{datetime.now(UTC).strftime('%Y%m%dT%H%M%S.%fZ')}-{secrets.token_hex(3)}"


def now() -> str:
    """The time, UTC, ISO 8601, in whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# The check that says how a thing was made, and nothing of what it does.
ANEW = "compiled-anew"

# Checks whose absent finding says: another owner compiled a part; no source saw a version on this ROCm.
OWN_SHARDS, UNTESTED = "own-shards", "untested"

# The check with a finding for each owner that built the same, where there are several.
OWNER = "owner"

# Checks that tell how a thing was made: right or not, they are no look at it.
_HOW = (ANEW, OWN_SHARDS, UNTESTED, OWNER)


def said_of(command: str, outcome: str, findings: Iterable[Finding]) -> Said | Literal[""]:
    """What a run that ended so is evidence of: of nothing, where no check found anything to look at."""
    match command, outcome:
        case "build", "built":
            return "built"
        case "rehearse", "rehearsed":
            return "rehearsed" if any(not finding.absent for finding in findings) else ""
        case "verify", "verified":
            looked = [finding for finding in findings if not finding.absent and finding.check not in _HOW]
            if not looked:
                return ""
            devices = [finding.device for finding in looked if finding.device]
            if not devices:
                return "checked without a GPU"
            return _ran([device for device in devices if not _software(device)])
        case _:
            return ""


# How the name of a device begins that is a program in the place of a GPU, or a GPU that is not AMD's.
EMULATED, FOREIGN = "emulated", "another maker's"


def _ran(gpus: Sequence[str]) -> Said:
    """Where it ran, by the names of its GPUs: the most that a single one of them says."""
    if not gpus:
        return "ran in software"
    if any(map(is_gpu, gpus)):
        return "ran on a GPU"
    emulated = all(device.startswith(EMULATED) for device in gpus)
    return "ran on an emulated GPU" if emulated else "ran on a GPU of another maker"


def as_emulated(finding: Finding) -> Finding:
    """The finding of a process that ran in an emulator: its device is none, whatever it is called."""
    device = f"{EMULATED} {finding.device}" if is_gpu(finding.device) else finding.device
    return finding.model_copy(update={"device": device})


def is_gpu(device: str) -> bool:
    """Whether a finding's device, by its name, is a GPU."""
    return bool(device) and not _software(device) and not device.startswith((f"{EMULATED} ", f"{FOREIGN} "))


def _software(device: str) -> bool:
    """Whether a device is a program: the CPU itself, or a driver that computes on it."""
    return device.lower().startswith(("cpu", "llvmpipe"))


def with_failure(run: Run) -> Run:
    """The run with the class and the known issue of its first failed step."""
    failed = next((step for step in run.steps if step.outcome == "failed"), None)
    update = {} if failed is None else {"failure": failed.failure, "issue": failed.issue}
    return run.model_copy(update=update)
