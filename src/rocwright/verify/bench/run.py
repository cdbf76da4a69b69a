"""Measuring what is built, in the sandbox and the root file system in which it is verified."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import re2

from rocbase.errors import CheckError, ExplainedError, InputError
from rocbase.files.atomic import sha256_file
from rocbase.units import size
from rocwheel.wheels.emulators import emulator_below, emulator_of
from rocwright import sandbox
from rocwright.execution.progress import PlainProgress, Progress
from rocwright.execution.runs import LogFile, UnderWay, log_name
from rocwright.model.architecture import described
from rocwright.plan.make import make_plan
from rocwright.plan.packages import RUN_WHEELS
from rocwright.plan.resolve.model import Lock
from rocwright.project import Project, built_outputs
from rocwright.records.model import BENCH, EMULATED, Figure, StepRun, now
from rocwright.sandbox.model import Ended
from rocwright.verify.bench.model import ABSENT, DEVICE, LONGEST, Measurement, measurements, read_figures
from rocwright.verify.lines import device_name
from rocwright.verify.prepare import CHECK_ROOT, Prepared, check_wheels, made_steps
from rocwright.verify.subject import VerifySubject

# How a file of a model for llama.cpp begins. Source: docs/gguf.md of ggml.
GGUF = b"GGUF"

# What a program may print while it measures: what was built may speak for it.
MOST_LINES = 20_000

OWN_MODEL = "the model that rocwright makes"


def bench(
    project: Project,
    lock: Lock,
    *,
    engine: str | None = None,
    runs: int = 5,
    model: Path | None = None,
    run_id: str = "",
    origin: str = "",
    say: Callable[[str], None],
    progress: Progress | None = None,
) -> list[Figure]:
    """Measure what a stack builds, each figure `runs` times, and keep the figures on record.

    `model` is a model of language to read in the place of the tiny one. Raises InputError where the stack is
    not built, nothing of it is measured, the model is none, or the GPU is an emulated one; CheckError where a
    program fails or prints no figure.
    """
    _refuse_emulator(emulator_of("self"))
    plan = make_plan(lock, project.catalog)
    artifacts = built_outputs(project, plan)
    check_wheels(lock, project)
    selected = _selected(lock, artifacts)
    read = OWN_MODEL if model is None else _described(model)
    figures: list[Figure] = []
    run = UnderWay(
        BENCH,
        project.request,
        project.home,
        say,
        lock=lock,
        run_id=run_id,
        origin=origin,
        variant=project.variant,
    )
    with run as under_way:
        prepared = Prepared(
            project=project,
            lock=lock,
            artifacts=artifacts,
            made=made_steps((CHECK_ROOT, RUN_WHEELS), project, plan, under_way, progress or PlainProgress()),
            logs=under_way.folder,
            say=say,
        )
        subjects = {
            subject.component.name: subject
            for subject in prepared.subjects(CHECK_ROOT, engine, model=model, runs=runs)
        }
        for component, measurement in selected:
            figures += _noted(subjects[component], measurement, read, under_way, say)
        under_way.ended("measured")
    return figures


def _selected(lock: Lock, artifacts: Collection[str]) -> list[tuple[str, Measurement]]:
    """What is measured of a lock, and on which component. Raises InputError where that is nothing."""
    selected = []
    for measurement in measurements():
        component = next((name for name in measurement.components if name in artifacts), "")
        if component:
            selected.append((component, measurement))
    if not selected:
        catalogued = sorted({name for measurement in measurements() for name in measurement.components})
        raise InputError(
            f"nothing of {lock.request.stack} is measured",
            cause=f"measured are {', '.join(catalogued)}, and it builds none of them",
            next_step="add a [[measurement]] to a bench.toml of your own (docs/bench.md)",
        )
    return selected


def _described(model: Path) -> str:
    """A model by its name and hash. Raises InputError where it is none."""
    try:
        with model.open("rb") as file:
            begin = file.read(len(GGUF))
    except OSError as error:
        raise InputError(
            f"{model} cannot be read",
            cause=str(error.strerror),
            next_step="name a model in GGUF that is on this machine",
        ) from error
    if begin != GGUF:
        raise InputError(
            f"{model} is not a model in GGUF",
            cause=f"it begins with {begin!r}, not with {GGUF!r}",
            next_step="name a .gguf file",
        )
    return f"{model.name} ({size(model.stat().st_size)}, sha256 {sha256_file(model)[:12]})"


def _noted(
    subject: VerifySubject,
    measurement: Measurement,
    model: str,
    under_way: UnderWay,
    say: Callable[[str], None],
) -> list[Figure]:
    """What a measurement finds, told and on record."""
    name = f"bench/{subject.component.name}/{measurement.name}"
    step_run = StepRun(
        name=name,
        key="",
        outcome="",
        state="running",
        component=subject.component.name,
        kind=BENCH,
        started=now(),
        log=log_name(name),
    )
    under_way.note(step_run)
    say(f"  bench {subject.component.name}: {measurement.name}")
    since = time.monotonic()
    ended = {"state": "ended", "outcome": "ok"}
    try:
        figures = _measured(subject, measurement, model if measurement.model else "", say)
    except ExplainedError as error:
        seconds = round(time.monotonic() - since, 3)
        failed = {"state": "ended", "outcome": "failed", "seconds": seconds, "error": error.as_dict()}
        under_way.note(step_run.model_copy(update=failed))
        raise
    details = {"seconds": round(time.monotonic() - since, 3), "measured": tuple(figures)}
    under_way.note(step_run.model_copy(update=ended | details))
    return figures


def _measured(
    subject: VerifySubject, measurement: Measurement, model: str, say: Callable[[str], None]
) -> list[Figure]:
    engine = sandbox.pick(subject.engine, subject.project.home.probes)
    log = LogFile(subject.logs / log_name(f"bench/{subject.component.name}/{measurement.name}"))
    lines: list[str] = []
    emulator = ""

    def on_line(line: str) -> None:
        nonlocal emulator
        log.line(line)
        if len(lines) < MOST_LINES:
            lines.append(line[:LONGEST])
        if re2.search(DEVICE, line):
            emulator = emulator or emulator_below(os.getpid())

    outcome = subject.ran(measurement, engine, on_line)
    log.close()
    device = _last(DEVICE, lines)
    _refuse_emulator(emulator or (device if device.startswith(EMULATED) else ""))
    if not outcome.ok and not _last(ABSENT, lines):
        how = "" if outcome.ended is Ended.EXITED else f"{outcome.ended.value}, "
        raise _failed(measurement, f"it ended with {how}{outcome.code}: {' | '.join(lines[-5:])[-400:]}")
    return figures_of(measurement, lines, subject.runs, model, described(), say)


def figures_of(
    measurement: Measurement,
    lines: Sequence[str],
    runs: int,
    model: str,
    machine: str,
    say: Callable[[str], None],
) -> list[Figure]:
    """The figures in what a program printed that measured `runs` times; none where it says that there is
    nothing to measure.

    Raises CheckError where some runs have no figure.
    """
    device = device_name(_last(DEVICE, lines))
    if absent := _last(ABSENT, lines):
        say(f"    absent {absent}")
        return []
    # what a device cannot do is in no run; what only some runs have is a fault
    values = {name: numbers for name, numbers in read_figures(measurement.figure, lines).items() if numbers}
    short = [f"{name} ({len(numbers)} of {runs})" for name, numbers in values.items() if len(numbers) != runs]
    if short or not values:
        raise _failed(measurement, f"not every run printed its figures: {', '.join(short) or 'none did'}")
    return [
        Figure(
            name=kind.name,
            unit=kind.unit,
            better=kind.better,
            values=tuple(values[kind.name]),
            device=device,
            machine=machine,
            model=model,
        )
        for kind in measurement.figure
        if kind.name in values
    ]


def _failed(measurement: Measurement, cause: str) -> CheckError:
    return CheckError(
        f"{measurement.name} was not measured",
        cause=cause,
        next_step="rocwright logs bench shows what it printed",
    )


def _last(pattern: str, lines: Sequence[str]) -> str:
    """What the last line of a form says, in letters that a file, a database and a terminal take."""
    matches = (match[1] for line in reversed(lines) if (match := re2.search(pattern, line)))
    text = next(matches, "")[:200].strip()
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def _refuse_emulator(emulator: str) -> None:
    if emulator:
        raise InputError(
            "an emulated GPU is not measured",
            cause=f"{emulator} runs its kernels on the CPU: how long they take says nothing of a card",
            next_step="rocwright bench, on a machine with the card",
        )
