"""Runs the steps of a plan: what is ready, in which order, records, logs, failures together at the end.

Where and how a step runs is the executor's (rocwright.farm): nothing here knows a process.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rocbase.errors import ExplainedError, InputError, from_dict
from rocbase.units import duration
from rocwright.execution.estimate import Expected, longest_first
from rocwright.execution.executor import (
    Ended,
    Event,
    Executor,
    Line,
    Lost,
    Queued,
    Sampled,
    Started,
    Task,
)
from rocwright.execution.killed import interrupted
from rocwright.execution.options import LOCAL, BuildOptions
from rocwright.execution.outcome import StepsOutcome as StepsOutcome
from rocwright.execution.overall import Whole
from rocwright.execution.progress import Progress, RunningStep, load
from rocwright.execution.retry import Tries, again_line, lost_line
from rocwright.execution.runs import LogFile, log_name
from rocwright.execution.shards import with_shards
from rocwright.model.steps import Step
from rocwright.plan.decide import Decision, State
from rocwright.records.model import StepRun, now
from rocwright.store.leases import abandon, holding
from rocwright.store.model import Store

# Seconds between two entries of what steps use in the record.
SAMPLE = 5.0

# Seconds after which nothing arrives any more that a machine sent before it was gone.
GRACE = 3.0


class Notes(Protocol):
    """Who keeps the record of a run."""

    def note(self, step: StepRun) -> None:
        """Take down how a step stands."""
        ...

    def sample(self, step: str, memory: int, processes: int) -> None:
        """Take down what it uses now: bytes, and processes that compile or link."""
        ...


def schedule(
    decisions: Sequence[Decision],
    store: Store,
    executor: Executor,
    options: BuildOptions,
    logs: Path,
    expected: Mapping[str, Expected],
    progress: Progress,
    under_way: Notes | None = None,
) -> StepsOutcome:
    """Run every step that must run, by an executor, several at once where it has places for them.

    `under_way` is told how each step stands, and what it uses. A failed step stops only what needs it.
    Raises InterruptedByUser on Ctrl-C, after ending what runs; InputError where there is no place at all.
    """
    with executor:
        offers = executor.offers()
        if not offers:
            raise _no_place(options)
        all_, shards = [*decisions], dict[str, tuple[str, ...]]()
        if options.compiler_cache and (options.shards or options.executor != LOCAL):
            all_, shards = with_shards(decisions, options.shards, offers, expected, store)
        # of every step: what came from elsewhere can be told, and built again, too
        for decision in all_:
            store.put_step(decision.step.key, decision.step.model_dump_json(by_alias=True).encode())
        with holding(store, {decision.step.key: decision.step.name for decision in all_}):
            return _Scheduler(
                all_, shards, store, executor, options, logs, expected, progress, under_way
            ).run()


@dataclass(slots=True)
class _Begun:
    """A task that has started: its record so far, how it is shown, its log, and what it used last."""

    run: StepRun
    running: RunningStep
    log: LogFile
    jobs: int
    sampled: Sampled | None = None

    def describe(self) -> str:
        """What it has now, for people."""
        last = self.sampled
        return load(last.jobs, last.memory) if last is not None else load(self.jobs, 0)


class _Scheduler:
    def __init__(
        self,
        decisions: Sequence[Decision],
        shards: Mapping[str, tuple[str, ...]],
        store: Store,
        executor: Executor,
        options: BuildOptions,
        logs: Path,
        expected: Mapping[str, Expected],
        progress: Progress,
        under_way: Notes | None,
    ) -> None:
        self.shards = shards
        self.part_of = {shard: parent for parent, all_ in shards.items() for shard in all_}
        self.steps = {
            decision.step.key: decision.step for decision in decisions if decision.state is State.RUN
        }
        self.waiting = longest_first(self.steps, expected, options.jobs, shards)
        names = {decision.step.key: decision.step.name for decision in decisions}
        self.queued = {key: _queued(step, names) for key, step in self.steps.items()}
        self.priority = {key: position for position, key in enumerate(self.waiting)}
        self.done: set[str] = set()
        self.refused: set[str] = set()
        self.store, self.executor, self.options = store, executor, options
        self.logs, self.progress, self.under_way = logs, progress, under_way
        self.whole = Whole([*self.steps.values()], expected, options.jobs)
        progress.of(self.whole.describe)
        self.outcome = StepsOutcome()
        self.tries = Tries()
        self.open: dict[str, Task] = {}
        self.begun: dict[str, _Begun] = {}
        self.gone: dict[str, float] = {}
        """What was lost with its machine, and when it is tried again."""
        self.stopping = False
        self.most_memory = max((offer.memory for offer in executor.offers()), default=0)
        self.sampled = time.monotonic()

    def run(self) -> StepsOutcome:
        for queued in self.queued.values():
            self._note(queued)
        try:
            self._submit_ready()
            while self.open or self.gone:
                for event in self.executor.events():
                    self._take(event)
                self._after_loss()
                self._sample()
        except KeyboardInterrupt:
            self._stop()
            raise interrupted() from None
        finally:
            for attempt in self.begun.values():
                attempt.log.close()
        self._skip_rest()
        return self.outcome

    def _submit_ready(self) -> None:
        """Hand over the steps whose inputs are there."""
        ready = [
            step
            for step in self.waiting.values()
            if step.key not in self.gone
            and all(item.key not in self.steps or item.key in self.done for item in step.inputs)
            and not any(key in self.waiting or key in self.open for key in self.shards.get(step.key, ()))
        ]
        for step in ready:
            del self.waiting[step.key]
            self.open[step.key] = task = self._task(step)
            self.executor.submit(task)

    def _after_loss(self) -> None:
        """Try again what was lost, once all that its machine had sent has arrived: perhaps a lease."""
        for key in [key for key, when in self.gone.items() if when <= time.monotonic()]:
            del self.gone[key]
            abandon(self.store, key)
            self._submit_ready()

    def _task(self, step: Step) -> Task:
        return Task(
            step=step,
            store=self.store.url,
            jobs=self.tries.jobs(step, self.options.jobs),
            alone=self.tries.second(step),
            memory=self.tries.memory(step),
            attempt=self.tries.count(step),
            priority=self.priority[step.key],
            options=self.options.for_steps(),
            shards=self.shards.get(step.key, ()),
        )

    def _take(self, event: Event) -> None:
        task = event.task
        open_task = self.open.get(task.step.key)
        if open_task is not task and open_task != task:
            return
        match event:
            case Queued():
                pass  # it has been on record as queued since the begin
            case Started():
                self._started(event)
            case Line():
                attempt = self._begun(task)
                attempt.log.line(event.text)
                self.progress.line(attempt.running, event.text)
            case Sampled():
                self._begun(task).sampled = event
            case Ended() | Lost():
                del self.open[task.step.key]
                if isinstance(event, Ended):
                    self._ended(event)
                else:
                    self._lost(event)
                self._submit_ready()

    def _begun(self, task: Task) -> _Begun:
        """What is known of a task that runs, also where nobody told that it started."""
        if task.id not in self.begun:
            self._started(Started(task, task.jobs))
        return self.begun[task.id]

    def _started(self, event: Started) -> None:
        step = event.task.step
        running = self.whole.started(step, event.jobs)
        name = log_name(step.name)
        run = self.queued[step.key].model_copy(
            update={
                "state": "running",
                "started": now(),
                "jobs": running.jobs,
                "memory": event.memory,
                "log": name,
            }
        )
        attempt = _Begun(run, running, LogFile(self.logs / name), event.jobs)
        running.load = attempt.describe
        self.begun[event.task.id] = attempt
        self.progress.started(running)
        self._note(run)

    def _ended(self, event: Ended) -> None:
        task, step = event.task, event.task.step
        if task.id not in self.begun and event.record is None and event.error is None:
            self.refused.add(step.key)
            return
        attempt = self._begun(task)
        del self.begun[task.id]
        attempt.log.close()
        run = _step_run(attempt, event, stopped=self.stopping)
        self.progress.ended(attempt.running, _words(run))
        if self.stopping:
            self._note(run)
            return
        if run.outcome != "failed":
            self._finished(run)
            self.done.add(step.key)
            self.whole.ended(step)
            return
        error = from_dict(run.error)
        if self.tries.grant(run, error, event.too_large, self.most_memory):
            self._again(step, run, again_line(run))
            return
        self._failed(step, run, self.tries.told(run, error, event.too_large))

    def _lost(self, event: Lost) -> None:
        step, attempt = event.task.step, self.begun.pop(event.task.id, None)
        run = self.queued[step.key] if attempt is None else attempt.run
        error = self.tries.lost(step, event)
        run = run.model_copy(update={"state": "ended", "outcome": "failed", "error": error.as_dict()})
        if attempt is not None:
            attempt.log.close()
            self.progress.ended(attempt.running, f"lost with {event.where}")
        if self.stopping:
            return
        if self.tries.grant_lost(run):
            self._again(step, run, lost_line(run, event))
            self.gone[step.key] = time.monotonic() + GRACE
        else:
            self._failed(step, run, error)

    def _again(self, step: Step, run: StepRun, line: str) -> None:
        self._finished(run.model_copy(update={"outcome": "again"}))
        self.progress.say(line)
        self.whole.again(step)
        self.priority[step.key] += len(self.steps)
        self.waiting[step.key] = step

    def _failed(self, step: Step, run: StepRun, error: ExplainedError) -> None:
        self._finished(run.model_copy(update={"error": error.as_dict()}))
        if step.key in self.part_of:
            self.whole.ended(step)
            parent = self.steps[self.part_of[step.key]].name
            self.progress.say(f"  {step.name}: failed ({error.message}); {parent} compiles that part itself")
            return
        self.whole.failed(step)
        self.outcome.failures.append((step.name, error))

    def _sample(self) -> None:
        if self.under_way is None or time.monotonic() - self.sampled < SAMPLE:
            return
        self.sampled = time.monotonic()
        for attempt in self.begun.values():
            if attempt.sampled is not None:
                self.under_way.sample(attempt.run.name, attempt.sampled.memory, attempt.sampled.processes)

    def _stop(self) -> None:
        """End what runs, and wait until it has."""
        self.stopping = True
        self.waiting.clear()
        self.gone.clear()
        for task in self.open.values():
            self.executor.cancel(task)
        while self.open:
            for event in self.executor.events():
                self._take(event)

    def _skip_rest(self) -> None:
        for step in self.steps.values():
            if step.key in self.waiting or step.key in self.refused:
                self._finished(
                    self.queued[step.key].model_copy(update={"state": "ended", "outcome": "skipped"})
                )

    def _finished(self, run: StepRun) -> None:
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


def _step_run(attempt: _Begun, event: Ended, *, stopped: bool) -> StepRun:
    """The record of an attempt that has ended."""
    updates: dict[str, object] = {
        "state": "ended",
        "seconds": event.seconds,
        "paused": round(event.paused, 1),
        "least_jobs": event.least_jobs,
        "most_jobs": event.most_jobs,
    }
    record = event.record
    if record is not None:
        updates |= {
            "outcome": "reused" if record.reused else "built",
            "engine": record.engine,
            "peak_memory": record.peak_memory,
            "compiler_cache": record.compiler_cache,
            "resumed": record.resumed,
            "counted": attempt.running.counted,
        }
        return attempt.run.model_copy(update=updates)
    # whatever it says when it was ended, it says because it was
    updates["peak_memory"] = event.peak_memory
    if stopped:
        return attempt.run.model_copy(update=updates | {"outcome": "stopped"})
    error = interrupted() if event.error is None else event.error
    return attempt.run.model_copy(update=updates | {"outcome": "failed", "error": error.as_dict()})


def _words(run: StepRun) -> str:
    """How an attempt went, in a few words."""
    time_ = duration(run.seconds)
    match run.outcome:
        case "reused":
            return f"inputs identical, not run again in {time_}"
        case "built":
            return f"done in {time_}{', resumed' if run.resumed else ''}"
        case "stopped":
            return f"stopped after {time_}"
        case _:
            return f"failed ({run.failure}) after {time_}"


def _no_place(options: BuildOptions) -> InputError:
    return InputError(
        f"the executor {options.executor} has no place where a step can run",
        cause="no machine of it is there, or none is ready",
        next_step="start one of its machines; or rocwright build --executor local",
    )
