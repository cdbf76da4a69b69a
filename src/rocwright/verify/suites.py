"""The smoke suites on any Python environment that has torch, built by rocwright or not."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from rocbase.errors import CheckError, InputError
from rocbase.processes import run as process
from rocwheel.wheels.emulators import emulator_below
from rocwright import __version__
from rocwright.catalog.target import Target
from rocwright.execution.runs import LogFile, log_name
from rocwright.home import Home
from rocwright.model.architecture import described
from rocwright.records.ended import me
from rocwright.records.model import (
    SUITE,
    Finding,
    Run,
    RunOutcome,
    StepRun,
    as_emulated,
    is_gpu,
    new_run_id,
    now,
    with_failure,
)
from rocwright.records.recorder import RunRecorder
from rocwright.verify.lines import outcome_word, read_line

# The program in the catalog's folder that runs the suites; it needs nothing of rocwright.
SCRIPT_PATH = "checks/torch/suite.py"

# The suite that repeats the operations of the suite torch, and compares the bits of what they give.
DRIFT = "drift"

SUITES = ("torch", "vision", "audio", "triton", "flash-attention", "vllm", DRIFT)
SIZES = ("small", "normal", "large")
REPEAT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteOrder:
    """What to try, where, and how much of it.

    `python` is the interpreter of the environment; `device` is auto, cpu, cuda (one of each kind of GPU;
    torch calls AMD's so as well) or cuda:N; `every` takes each of several equal GPUs. `targets` are GPU
    targets with their wave size (`gfx1151:32`) to compile for without one; `lacks` maps what the target
    has not to the catalog's words on it: what needs it is left out. The limits are seconds of wall clock.
    `repeat` is how often the suite drift runs each operation.
    """

    suites: tuple[str, ...]
    python: str = "python3"
    device: str = "auto"
    size: str = "normal"
    every: bool = False
    only: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    lacks: Mapping[str, str] = field(default_factory=dict)
    operation_seconds: float = 120.0
    group_seconds: float = 600.0
    repeat: int = REPEAT

    def arguments(self) -> list[str]:
        """The command line of the script."""
        words = [*self.suites, "--marks", "--device", self.device, "--size", self.size]
        words += ["--every"] if self.every else []
        words += [word for name in self.only for word in ("--only", name)]
        words += target_words(self.targets)
        words += lacks_words(self.lacks)
        words += ["--repeat", str(self.repeat)] if DRIFT in self.suites else []
        words += ["--operation-seconds", str(self.operation_seconds)]
        return [*words, "--group-seconds", str(self.group_seconds)]


def order_for(
    suites: Sequence[str],
    python: str,
    *,
    device: str,
    size: str,
    every: bool,
    only: Sequence[str],
    repeat: int = REPEAT,
) -> SuiteOrder:
    """What to try, in a user's words. Raises InputError for a suite or size that there is not, and for a
    `repeat` under 2, which compares nothing, or over 10,000."""
    for kind, names, allowed in (("suite", suites, SUITES), ("size", (size,), SIZES)):
        for name in names:
            if name not in allowed:
                raise InputError(
                    f"there is no {kind} {name!r}",
                    cause=f"these are: {', '.join(allowed)}",
                    next_step="name one of them",
                )
    if not 2 <= repeat <= 10_000:
        raise InputError(
            f"{repeat} is not how often an operation can be repeated",
            cause="fewer than 2 runs compare nothing, more than 10,000 are refused",
            next_step=f"--repeat {REPEAT}",
        )
    order = SuiteOrder(suites=tuple(suites), python=python, device=device, size=size, every=every)
    return replace(order, only=tuple(only), repeat=repeat)


def lacking(targets: Sequence[Target]) -> dict[str, str]:
    """What all of these GPU targets lack, with the catalog's words."""
    return {
        name: f"{', '.join(target.name for target in targets)}: {reason}"
        for name, reason in targets[0].lacks.items()
        if all(name in target.lacks for target in targets)
    }


def lacks_words(lacks: Mapping[str, str]) -> list[str]:
    """The words that tell a program of checks what a target lacks."""
    return [word for pair in lacks.items() for word in ("--lacks", "=".join(pair))]


def target_names(targets: Sequence[Target]) -> tuple[str, ...]:
    """GPU targets as a program of checks is told them: with the size of their waves, where it is known."""
    return tuple(f"{target.name}:{target.wave}" if target.wave else target.name for target in targets)


def target_words(names: Sequence[str]) -> list[str]:
    """The words that tell a program of checks which targets to compile for."""
    return [word for name in names for word in ("--target", name)]


def aimed(order: SuiteOrder, targets: Sequence[Target]) -> SuiteOrder:
    """The same for these GPU targets: kernels are compiled for them; what all of them lack is left out."""
    return replace(order, targets=target_names(targets), lacks=lacking(targets))


def run_suites(
    order: SuiteOrder, folder: Path, home: Home, say: Callable[[str], None], *, run_id: str = ""
) -> list[Finding]:
    """Run the suites in that environment, and keep the findings on record under `run_id`, or a new id.

    `folder` is the catalog's. Raises InputError where the interpreter is not there; what is wrong with the
    environment is a finding, not an error.
    """
    python = shutil.which(str(Path(order.python).expanduser()))
    if python is None:
        raise InputError(
            f"{order.python} is not a Python that can be run",
            cause="it does not exist, is a folder, or may not be executed",
            next_step="name the Python of the environment that has torch: --python VENV/bin/python",
        )
    run_id, started, start = run_id or new_run_id(), now(), time.monotonic()
    name = f"verify/suite/{'+'.join(order.suites)}"
    log = LogFile(home.runs / run_id / log_name(name))
    findings: list[Finding] = []
    tail: list[str] = []
    emulator = ""

    def on_line(line: str) -> None:
        nonlocal emulator
        log.line(line)
        try:
            report = read_line(line)
        except ValueError:
            report = None
        if report is None:
            tail[:] = [*tail[-5:], line] if line.strip() else tail
            return
        if is_gpu(report.device):
            emulator = emulator or emulator_below(os.getpid())
        finding = _finding(python, report.name, report.ok, report.detail, report.device, absent=report.absent)
        findings.append(finding)
        say(f"    {outcome_word(finding):<6} {finding.name}  {finding.detail}")

    env = dict(os.environ) | {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    finished = process.stream([python, folder / SCRIPT_PATH, *order.arguments()], on_line, env=env)
    log.close()
    if not findings or (not finished.ok and all(finding.ok for finding in findings)):
        output = " | ".join(tail)[-400:] or "no output"
        findings.append(_finding(python, "suite", False, f"ended with {finished.returncode}: {output}", ""))
    # a process that was seen in an emulator told of no GPU before either
    findings = [as_emulated(finding) for finding in findings] if emulator else findings
    run = _run(run_id, started, time.monotonic() - start, name, order, findings)
    RunRecorder(home, say).close(RunOutcome(run=run, findings=tuple(findings)))
    return findings


def _finding(python: str, name: str, ok: bool, detail: str, device: str, *, absent: bool = False) -> Finding:
    suite, colon, test = name.partition(": ")
    return Finding(
        component=suite if colon else "suite",
        check="suite",
        name=test if colon else name,
        ok=ok,
        absent=absent,
        detail=detail,
        device=device,
        artifact=python,
        when=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        machine=described(),
        engine="host",
    )


def _run(
    run_id: str, started: str, seconds: float, name: str, order: SuiteOrder, findings: Sequence[Finding]
) -> Run:
    bad = [finding for finding in findings if not finding.ok]
    step = StepRun(
        name=name,
        key="",
        outcome="failed" if bad else "ok",
        seconds=round(seconds, 3),
        log=log_name(name),
        kind="check",
        started=started,
        error=CheckError(
            "; ".join(finding.name for finding in bad),
            cause=bad[0].detail,
            next_step="rocwright logs verify shows what the checks printed",
        ).as_dict()
        if bad
        else {},
    )
    run = Run(
        id=run_id,
        command=SUITE,
        started=started,
        ended=now(),
        seconds=round(seconds, 3),
        stack="+".join(order.suites),
        gpu=tuple(dict.fromkeys(finding.device for finding in findings if finding.device)),
        base="this environment",
        outcome="failed" if bad else "verified",
        steps=(step,),
        rocwright=__version__,
        **me(),
    )
    return with_failure(run)
