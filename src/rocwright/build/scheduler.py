"""Runs the steps of a plan: order, cores and memory, logs, failures together at the end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from rocwright import process
from rocwright.build.again import Tries, again_line
from rocwright.build.expect import Expected, compiles
from rocwright.build.progress import Progress
from rocwright.build.runs import LogFile, StepRun, log_name, read_report
from rocwright.build.whole import Whole
from rocwright.errors import (
    InternalError,
    InterruptedByUser,
    OutOfDiskError,
    OutOfMemoryError,
    RocwrightError,
    from_dict,
)
from rocwright.home import Home
from rocwright.plan.decide import Decision, State
from rocwright.plan.model import Step
from rocwright.sandbox.memory import machine_kills
from rocwright.store.local import LocalStore
from rocwright.units import duration, size

DISK_RESERVE = 512 * 1024**2
"""Bytes left free on the disk beyond what the plan is known to need."""

MEMORY_SHARE = 0.95
"""The part of the machine's free memory that one step may take before it is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user may say about a run: most jobs at once, the engine by name, and whether changes in trees
    that nobody saved are thrown away."""

    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    engine: str | None = None
    discard: bool = False


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How the steps went; `failures` are told together."""

    steps: list[StepRun] = field(default_factory=list)
    failures: list[tuple[str, RocwrightError]] = field(default_factory=list)


def check_room(decisions: Sequence[Decision], home: Home) -> int:
    """The bytes that the steps to run are known to need. Raises OutOfDiskError where they are not free."""
    needed = sum(one.step.needs.disk for one in decisions if one.state is State.RUN)
    home.path.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(home.path).free
    if needed and needed + DISK_RESERVE > free:
        raise OutOfDiskError(
            f"this build needs about {size(needed)} on the disk of {home.path}; {size(free)} are free",
            cause=", ".join(
                f"{one.step.name} {size(one.step.needs.disk)}"
                for one in sorted(decisions, key=lambda one: -one.step.needs.disk)[:4]
                if one.state is State.RUN
            ),
            next_step="free some room (rocwright clean --dry-run shows what can go), "
            "or set ROCWRIGHT_HOME to a larger disk",
        )
    return needed


def run_steps(
    decisions: Sequence[Decision],
    store: LocalStore,
    home: Home,
    options: Options,
    logs: Path,
    expected: Mapping[str, Expected],
    progress: Progress,
) -> Outcome:
    """Run every step that must run, several at once where cores and memory allow.

    A failed step stops only what needs it. Raises InterruptedByUser on Ctrl-C, after ending what runs.
    """
    for one in decisions:
        if one.state is State.RUN:
            store.put_step(one.step.key, one.step.model_dump_json(by_alias=True).encode())
    return _Scheduler(decisions, store, home, options, logs, expected, progress).run()


class _Scheduler:
    def __init__(
        self,
        decisions: Sequence[Decision],
        store: LocalStore,
        home: Home,
        options: Options,
        logs: Path,
        expected: Mapping[str, Expected],
        progress: Progress,
    ) -> None:
        self.waiting = {one.step.key: one.step for one in decisions if one.state is State.RUN}
        self.keys = dict(self.waiting)
        self.done: set[str] = set()
        self.store, self.home, self.options = store, home, options
        self.logs, self.progress = logs, progress
        self.whole = Whole([*self.waiting.values()], expected, options.jobs)
        progress.of(self.whole.describe)
        self.free = options.jobs
        self.outcome = Outcome()
        self.tries = Tries()
        self.children: set[subprocess.Popen[bytes]] = set()
        self.lock = threading.Lock()

    def run(self) -> Outcome:
        running: dict[Future[StepRun], tuple[Step, int]] = {}
        with ThreadPoolExecutor(max_workers=max(4, self.options.jobs)) as pool:
            try:
                while self.waiting or running:
                    for step, jobs in self._startable([step for step, _ in running.values()]):
                        self.waiting.pop(step.key)
                        self.free -= _cores(step, jobs)
                        running[pool.submit(self._run_step, step, jobs)] = (step, jobs)
                    if not running:
                        break
                    ended, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in ended:
                        step, jobs = running.pop(future)
                        self.free += _cores(step, jobs)
                        self._take(step, future.result())
            except KeyboardInterrupt:
                self._stop()
                raise InterruptedByUser(
                    "stopped",
                    cause="Ctrl-C",
                    next_step="what was finished is kept: the same command goes on from there",
                ) from None
        self._skip_rest()
        return self.outcome

    def _startable(self, running: Collection[Step]) -> list[tuple[Step, int]]:
        """Steps whose inputs are there, each with its number of jobs."""
        ready = [
            step
            for step in self.waiting.values()
            if all(item.key not in self.keys or item.key in self.done for item in step.inputs)
        ]
        heavy = self._beside([step for step in ready if compiles(step)], running)
        chosen: list[tuple[Step, int]] = [(step, 1) for step in ready if not compiles(step)]
        free = self.free - len(chosen)
        memory = psutil.virtual_memory().available
        for count, step in enumerate(heavy):
            share = max(free, 0) // (len(heavy) - count)
            jobs = min(share, max(1, memory // max(step.needs.memory, 1)), step.needs.cores)
            jobs = min(jobs, self.tries.jobs(step, jobs))
            if jobs < 1 and not (running or chosen):
                jobs = 1
            if jobs < 1:
                continue
            free -= jobs
            memory -= jobs * step.needs.memory
            chosen.append((step, jobs))
        return chosen

    def _beside(self, ready: list[Step], running: Collection[Step]) -> list[Step]:
        """Those of the ready steps that may compile beside what does: a second try is alone."""
        busy = [step for step in running if compiles(step)]
        if any(self.tries.second(step) for step in busy):
            return []
        first = [step for step in ready if not self.tries.second(step)]
        return first or ([] if busy else ready[:1])

    def _run_step(self, step: Step, jobs: int) -> StepRun:
        running = self.whole.started(step, jobs)
        self.progress.started(running)
        memory = int(psutil.virtual_memory().available * MEMORY_SHARE) if compiles(step) else None
        killed_before = machine_kills()
        name = log_name(step.name)
        log = LogFile(self.logs / name)
        with tempfile.TemporaryDirectory(prefix="rocwright-") as folder:
            report = Path(folder) / "report.json"

            def on_line(line: str) -> None:
                log.line(line)
                self.progress.line(running, line)

            try:
                finished = process.stream(
                    self._command(step, jobs, memory, report),
                    on_line,
                    on_start=self._register,
                    env=self._environment(),
                )
            finally:
                log.close()
            told = read_report(report)
        error = told.get("error")
        if finished.ok and "record" in told:
            record = told["record"]
            assert isinstance(record, dict)
            run = StepRun(
                name=step.name,
                key=step.key,
                outcome="reused" if record.get("reused") else "built",
                seconds=finished.seconds,
                log=name,
                engine=str(record.get("engine", "")),
                jobs=running.jobs,
                memory=memory,
                peak_memory=record.get("peak_memory"),
                compiler_cache=record.get("compiler_cache") or {},
                counted=running.counted,
            )
            words = "inputs identical, not run again" if run.outcome == "reused" else "done"
            self.progress.ended(running, f"{words} in {duration(finished.seconds)}")
            return run
        failure = from_dict(error) if isinstance(error, dict) else _killed(finished.returncode, killed_before)
        self.progress.ended(running, f"failed ({failure.failure.value}) after {duration(finished.seconds)}")
        return StepRun(
            name=step.name,
            key=step.key,
            outcome="failed",
            seconds=finished.seconds,
            log=name,
            jobs=running.jobs,
            memory=memory,
            peak_memory=peak if isinstance(peak := told.get("peak_memory"), int) else None,
            error=failure.as_dict(),
        )

    def _command(self, step: Step, jobs: int, memory: int | None, report: Path) -> list[str]:
        command = [sys.executable, "-m", "rocwright", "exec-step", step.key, "--store", self.store.url]
        command += ["--jobs", str(jobs), "--report", str(report)]
        if memory is not None:
            command += ["--memory", str(memory)]
        if self.options.engine:
            command += ["--engine", self.options.engine]
        return command

    def _environment(self) -> dict[str, str]:
        return os.environ | {"ROCWRIGHT_HOME": str(self.home.path), "PYTHONUNBUFFERED": "1"}

    def _register(self, child: subprocess.Popen[bytes]) -> None:
        with self.lock:
            self.children.add(child)

    def _stop(self) -> None:
        self.waiting.clear()
        with self.lock:
            for child in self.children:
                if child.poll() is None:
                    process.kill_group(child)

    def _take(self, step: Step, run: StepRun) -> None:
        if run.outcome != "failed":
            self.outcome.steps.append(run)
            self.done.add(step.key)
            self.whole.ended(step)
            return
        error = from_dict(run.error)
        if self.tries.grant(run, error):
            self.outcome.steps.append(run.model_copy(update={"outcome": "again"}))
            self.progress.say(again_line(run))
            self.whole.again(step)
            self.waiting[step.key] = step
            return
        self.whole.failed(step)
        error = self.tries.told(run, error)
        self.outcome.steps.append(run.model_copy(update={"error": error.as_dict()}))
        self.outcome.failures.append((step.name, error))

    def _skip_rest(self) -> None:
        for step in self.waiting.values():
            self.outcome.steps.append(StepRun(name=step.name, key=step.key, outcome="skipped"))


def _cores(step: Step, jobs: int) -> int:
    return jobs if compiles(step) else 1


def _killed(code: int, before: int | None) -> RocwrightError:
    """The error of a step's process that told nothing; `before` is how many the kernel had killed then."""
    after = machine_kills()
    if code != -signal.SIGKILL:
        return InternalError(
            f"the step's process ended with {code} and told nothing",
            cause="a fault of rocwright",
            next_step="rocwright logs shows its last lines; please report them",
        )
    if before is None or before != after:
        return OutOfMemoryError(
            "the step's process was killed",
            cause="the kernel had no memory left for it",
            next_step="run again; with fewer jobs where memory is short (rocwright build --jobs 1)",
        )
    return InterruptedByUser(
        "the step's process was killed",
        cause="somebody ended it, or a service that frees memory; the kernel did not, by its own count",
        next_step="run again; with fewer jobs where memory is short (rocwright build --jobs 1)",
    )
