"""Runs the steps of a plan: order, cores and memory, logs, failures together at the end."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Protocol

from rocwright.errors import (
    FailureClass,
    RocwrightError,
    from_dict,
)
from rocwright.execution.disk import DiskWatch, places, stopped, storage_of
from rocwright.execution.estimate import Expected, compiles
from rocwright.execution.jobs.room import free_memory, read_room
from rocwright.execution.jobs.server import JobServer, Seat
from rocwright.execution.killed import interrupted, killed
from rocwright.execution.options import Options as Options
from rocwright.execution.options import Outcome as Outcome
from rocwright.execution.overall import Whole
from rocwright.execution.progress import Progress
from rocwright.execution.retry import Tries, again_line
from rocwright.execution.runs import LogFile, log_name, read_report
from rocwright.execution.step_process import Asked
from rocwright.execution.workspace import Workspace
from rocwright.home import Home
from rocwright.model.steps import Step
from rocwright.plan.decide import Decision, State
from rocwright.processes import run as process
from rocwright.records.model import StepRun, now
from rocwright.sandbox.memory import machine_kills
from rocwright.store.leases import holding
from rocwright.store.local import LocalStore
from rocwright.units import duration
from rocwright.untrusted import temporary_folder

GRACE = 20.0
"""Seconds that a step has to end in order before it is killed."""

MEMORY_SHARE = 0.95
"""The part of the machine's free memory that one step may take before it is ended."""


AGAIN = 0.5
"""Seconds after which steps without a place ask again: what runs may have joined the job server meanwhile."""

SAMPLE = 5.0
"""Seconds between two looks at what steps use, for the record."""


class Notes(Protocol):
    """Who keeps the record of a run."""

    def note(self, step: StepRun) -> None:
        """Take down how a step stands."""
        ...

    def sample(self, step: str, memory: int, processes: int) -> None:
        """Take down what it uses now: bytes, and processes that compile or link."""
        ...


def run_steps(
    decisions: Sequence[Decision],
    store: LocalStore,
    home: Home,
    options: Options,
    logs: Path,
    expected: Mapping[str, Expected],
    progress: Progress,
    under_way: Notes | None = None,
) -> Outcome:
    """Run every step that must run, several at once where cores and memory allow.

    `under_way` is told how each step stands, in whatever thread, and what it uses. A failed step stops only
    what needs it. Raises InterruptedByUser on Ctrl-C, after ending what runs.
    """
    # of every step: what came from elsewhere can be told, and built again, too
    for one in decisions:
        store.put_step(one.step.key, one.step.model_dump_json(by_alias=True).encode())
    with holding(store, {one.step.key: one.step.name for one in decisions}):
        return _Scheduler(decisions, store, home, options, logs, expected, progress, under_way).run()


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
        under_way: Notes | None,
    ) -> None:
        self.waiting = {one.step.key: one.step for one in decisions if one.state is State.RUN}
        self.keys = dict(self.waiting)
        names = {one.step.key: one.step.name for one in decisions}
        self.queued = {key: _queued(step, names) for key, step in self.waiting.items()}
        self.done: set[str] = set()
        self.store, self.home, self.options = store, home, options
        self.logs, self.progress, self.under_way = logs, progress, under_way
        self.whole = Whole([*self.waiting.values()], expected, options.jobs)
        progress.of(self.whole.describe)
        self.server = JobServer(
            home, jobs=options.jobs, memory=options.memory, sharing=options.sharing, say=progress.say
        )
        self.outcome = Outcome()
        self.tries = Tries()
        self.running: dict[str, Step] = {}
        self.disk = DiskWatch(
            where=places(home) | storage_of(options.engine, home),
            home=home,
            running=lambda: [*self.running.values()],
            on_full=self._end_in_order,
            say=progress.say,
        )
        self.children: set[subprocess.Popen[bytes]] = set()
        self.stopping = False
        self.lock = threading.Lock()

    def run(self) -> Outcome:
        running: dict[Future[StepRun], tuple[Step, Seat]] = {}
        sampled = time.monotonic()
        for told in self.queued.values():
            self._note(told)
        pool = ThreadPoolExecutor(max_workers=max(4, 2 * self.options.jobs))
        with self.server, pool, self.disk.watching():
            try:
                while self.waiting or running:
                    for step, seat in self._startable([step for step, _ in running.values()]):
                        self.waiting.pop(step.key)
                        running[pool.submit(self._run_step, step, seat)] = (step, seat)
                    if not running:
                        break
                    ended, _ = wait(running, timeout=AGAIN, return_when=FIRST_COMPLETED)
                    for future in ended:
                        self._take(*running.pop(future), future.result())
                    if self.under_way is not None and time.monotonic() - sampled >= SAMPLE:
                        sampled = time.monotonic()
                        for step, seat in running.values():
                            self.under_way.sample(step.name, seat.memory, seat.working)
            except KeyboardInterrupt:
                self._stop()
                raise interrupted() from None
        self._skip_rest()
        return self.outcome

    def _startable(self, running: Collection[Step]) -> list[tuple[Step, Seat]]:
        """Steps whose inputs are there and that have a place, each with it; none on a nearly full disk."""
        if self.disk.full is not None:
            return []
        ready = [
            step
            for step in self.waiting.values()
            if all(item.key not in self.keys or item.key in self.done for item in step.inputs)
        ]
        chosen = [(step, self.server.small_seat(step)) for step in ready if not compiles(step)]
        heavy = self._beside([step for step in ready if compiles(step)], running)
        for count, step in enumerate(heavy):
            most = self.tries.jobs(step, self.options.jobs)
            seat = self.server.seat(step, waiting=len(heavy) - count, most=most)
            if seat is not None:
                chosen.append((step, seat))
        return chosen

    def _beside(self, ready: list[Step], running: Collection[Step]) -> list[Step]:
        """Those of the ready steps that may compile beside what does: a second try is alone."""
        busy = [step for step in running if compiles(step)]
        if any(self.tries.second(step) for step in busy):
            return []
        first = [step for step in ready if not self.tries.second(step)]
        return first or ([] if busy else ready[:1])

    def _run_step(self, step: Step, seat: Seat) -> StepRun:
        with contextlib.closing(seat):
            run = self._run_seated(step, seat)
        held = seat.close()
        return run.model_copy(
            update={
                "paused": round(held.paused_seconds, 1),
                "least_jobs": held.least,
                "most_jobs": held.most,
            }
        )

    def _run_seated(self, step: Step, seat: Seat) -> StepRun:
        running = self.whole.started(step, seat.jobs)
        running.load = seat.describe
        self.running[step.key] = step
        self.progress.started(running)
        memory = self._memory() if compiles(step) else None
        before = machine_kills()
        name = log_name(step.name)
        begun = self.queued[step.key].model_copy(
            update={"state": "running", "started": now(), "jobs": running.jobs, "memory": memory, "log": name}
        )
        self._note(begun)
        log = LogFile(self.logs / name)
        with temporary_folder("step") as folder:
            report = Path(folder) / "report.json"

            def on_line(line: str) -> None:
                log.line(line)
                self.progress.line(running, line)

            def on_start(child: subprocess.Popen[bytes]) -> None:
                seat.started(child.pid)
                self._register(child)

            try:
                finished = process.stream(
                    self._command(step, seat.jobs, memory, report),
                    on_line,
                    on_start=on_start,
                    env=self._environment(),
                )
            finally:
                log.close()
                self.running.pop(step.key, None)
            told = read_report(report)
        error = told.get("error")
        if finished.ok and "record" in told:
            record = told["record"]
            assert isinstance(record, dict)
            run = begun.model_copy(
                update={
                    "state": "ended",
                    "outcome": "reused" if record.get("reused") else "built",
                    "seconds": finished.seconds,
                    "engine": str(record.get("engine", "")),
                    "peak_memory": record.get("peak_memory"),
                    "compiler_cache": record.get("compiler_cache") or {},
                    "counted": running.counted,
                }
            )
            words = "inputs identical, not run again" if run.outcome == "reused" else "done"
            self.progress.ended(running, f"{words} in {duration(finished.seconds)}")
            return run
        if self.stopping:
            # whatever it says now, it says because it was ended
            failure: RocwrightError = interrupted()
        else:
            failure = from_dict(error) if isinstance(error, dict) else killed(finished.returncode, before)
            failure = self._for_disk(step, failure)
        words = "stopped" if self.stopping else f"failed ({failure.failure.value})"
        self.progress.ended(running, f"{words} after {duration(finished.seconds)}")
        return begun.model_copy(
            update={
                "state": "ended",
                "outcome": "stopped" if self.stopping else "failed",
                "seconds": finished.seconds,
                "peak_memory": peak if isinstance(peak := told.get("peak_memory"), int) else None,
                "error": failure.as_dict(),
            }
        )

    def _command(self, step: Step, jobs: int, memory: int | None, report: Path) -> list[str]:
        asked = Asked(
            key=step.key,
            store=self.store.url,
            jobs=jobs,
            memory=memory,
            engine=self.options.engine,
            server=str(self.server.folder) if self.server.sharing else None,
            compiler_cache=self.options.compiler_cache,
            report=str(report),
        )
        return [sys.executable, "-m", "rocwright.execution", *asked.words()]

    def _memory(self) -> int:
        """What one step may take: no more than the machine has now, nor than any bound above the build."""
        free = int(free_memory() * MEMORY_SHARE)
        return min(free, self.options.memory or free, read_room(None, None).total)

    def _environment(self) -> dict[str, str]:
        ours = {"ROCWRIGHT_HOME": str(self.home.path), "PYTHONUNBUFFERED": "1"}
        return os.environ | ours | self.server.environment

    def _register(self, child: subprocess.Popen[bytes]) -> None:
        with self.lock:
            self.children.add(child)
        if self.disk.full is not None:
            child.terminate()

    def _stop(self) -> None:
        self.stopping = True
        self.waiting.clear()
        with self.lock:
            for child in self.children:
                if child.poll() is None:
                    process.kill_group(child)

    def _end_in_order(self) -> None:
        """Ask what runs to end, and see to it: its sandbox goes, and nothing half-written stays."""
        with self.lock:
            running = [child for child in self.children if child.poll() is None]
        for child in running:
            child.terminate()
        end = time.monotonic() + GRACE
        while any(child.poll() is None for child in running) and time.monotonic() < end:
            time.sleep(0.05)
        for child in running:
            if child.poll() is None:
                process.kill_group(child)

    def _for_disk(self, step: Step, failure: RocwrightError) -> RocwrightError:
        """A step's failure; that of a full disk, where a disk is nearly full, whatever the step said."""
        volume = self.disk.look()
        if volume is None:
            return failure
        folder = Workspace.of(self.home, step.key)
        if not self.options.keep_stopped:
            with self.store.lock(step.key):
                folder.remove()
        return stopped(self.disk, volume, step, kept=folder.path if self.options.keep_stopped else None)

    def _take(self, step: Step, seat: Seat, run: StepRun) -> None:
        if run.outcome != "failed":
            self._ended(run)
            self.done.add(step.key)
            self.whole.ended(step)
            return
        error = from_dict(run.error)
        if error.failure is FailureClass.OUT_OF_MEMORY and run.peak_memory:
            self.server.ran_out(step, run.jobs, run.peak_memory)
        if self.tries.grant(run, error, seat.alone):
            self._ended(run.model_copy(update={"outcome": "again"}))
            self.progress.say(again_line(run))
            self.whole.again(step)
            self.waiting[step.key] = step
            return
        self.whole.failed(step)
        error = self.tries.told(run, error, seat.alone)
        self._ended(run.model_copy(update={"error": error.as_dict()}))
        self.outcome.failures.append((step.name, error))

    def _skip_rest(self) -> None:
        for step in self.waiting.values():
            skipped = self.queued[step.key].model_copy(update={"state": "ended", "outcome": "skipped"})
            self._ended(skipped)

    def _ended(self, run: StepRun) -> None:
        self.outcome.steps.append(run)
        self._note(run)

    def _note(self, run: StepRun) -> None:
        if self.under_way is not None:
            self.under_way.note(run)


def _queued(step: Step, names: Mapping[str, str]) -> StepRun:
    needs = tuple(dict.fromkeys(names[item.key] for item in step.inputs if item.key in names))
    return StepRun(
        name=step.name,
        key=step.key,
        outcome="",
        state="queued",
        component=step.component,
        kind=step.kind,
        needs=needs,
    )
