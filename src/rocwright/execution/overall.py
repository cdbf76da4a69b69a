"""How far a whole build is: the steps to go, and how long they will take together."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from threading import Lock

from rocbase.units import duration
from rocwright.execution.estimate import Expected, compiles, most_jobs, whole
from rocwright.execution.pace import Calm, left_text
from rocwright.execution.progress import RunningStep
from rocwright.model.steps import Step


class Whole:
    """The steps of a build, in an order in which each follows what it needs; told by several threads."""

    def __init__(self, steps: Sequence[Step], expected: Mapping[str, Expected], jobs: int) -> None:
        self._steps = {step.key: step for step in steps}
        self._count, self._expected, self._jobs = len(steps), expected, jobs
        self._running: dict[str, RunningStep] = {}
        self._lock = Lock()
        self._begun, self._calm = time.monotonic(), Calm()

    def started(self, step: Step, jobs: int) -> RunningStep:
        """A step begins, with so many jobs: what is to be told of it."""
        expected = self._expected.get(step.name, Expected())
        jobs = jobs if compiles(step) else 1
        running = RunningStep(step.name, jobs, expected.seconds(jobs), expected.counted)
        with self._lock:
            self._running[step.key] = running
        return running

    def ended(self, step: Step) -> None:
        """A step is done."""
        with self._lock:
            self._running.pop(step.key, None)
            self._steps.pop(step.key, None)

    def again(self, step: Step) -> None:
        """A step is to be tried once more."""
        with self._lock:
            self._running.pop(step.key, None)

    def failed(self, step: Step) -> None:
        """A step failed: what needs it will not come either."""
        with self._lock:
            self._running.pop(step.key, None)
            blocked = {step.key}
            for dependent in self._steps.values():
                if any(item.key in blocked for item in dependent.inputs):
                    blocked.add(dependent.key)
            self._steps = {key: dependent for key, dependent in self._steps.items() if key not in blocked}

    def describe(self) -> str:
        """One line: the time left as far as it is known, and the steps to go; empty for a last one."""
        with self._lock:
            steps = tuple(self._steps.values())
            remaining = {step.key: self._seconds_left(step) for step in steps}
        if len(steps) < 2:
            return ""
        total = whole(steps, remaining, self._jobs)
        unknown = [step for step in steps if step.name in total.unknown and compiles(step)]
        parts = [f"{len(steps)} of {self._count} steps to go"]
        if total.seconds:
            elapsed = time.monotonic() - self._begun
            shown = self._calm.follow(total.seconds, self._begun + elapsed)
            share = elapsed / (elapsed + shown) if shown else 1
            parts.insert(
                0, f"at least {duration(shown)} left" if unknown else f"about {left_text(shown, share)}"
            )
        if unknown:
            parts.append(f"no history of {', '.join(step.name for step in unknown[:3])}")
        return " · ".join(parts)

    def _seconds_left(self, step: Step) -> float | None:
        """Wall seconds of a step with all the jobs that it can use."""
        running = self._running.get(step.key)
        if running is None:
            return self._expected.get(step.name, Expected()).seconds(most_jobs(step, self._jobs)) or None
        return running.left * running.jobs / most_jobs(step, self._jobs) if running.left else None
