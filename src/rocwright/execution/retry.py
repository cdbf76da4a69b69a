"""A step that ran out of memory is tried once more, with less at once, and alone; one that was lost with the
machine where it ran is tried elsewhere."""

from __future__ import annotations

from collections import defaultdict

from rocbase.errors import ExplainedError, FailureClass, OutOfMemoryError, SandboxError
from rocbase.units import count, size
from rocwright.execution.executor import Alone, Lost
from rocwright.model.steps import Step
from rocwright.records.model import StepRun

# How often a step is tried again that was lost: one that ends three machines is at fault itself.
MOST_LOST = 2


class Tries:
    """The first tries of this build that ran out of memory, by the key of their step, and the machines with
    which one was lost."""

    def __init__(self) -> None:
        self._first: dict[str, StepRun] = {}
        self._lost: defaultdict[str, list[str]] = defaultdict(list)

    def count(self, step: Step) -> int:
        """The number of the next try at a step, from 1."""
        return 1 + (step.key in self._first) + len(self._lost[step.key])

    def lost(self, step: Step, event: Lost) -> ExplainedError:
        """The error of a step that was lost once more, with all machines that went with it."""
        attempt, machines = self.count(step), self._lost[step.key]
        machines.append(event.where)
        return SandboxError(
            f"the step was lost with {' and '.join(dict.fromkeys(machines))}, at attempt {attempt}",
            cause=event.cause,
            next_step="see that its machines stay up; then run again: finished steps are kept",
            subject=event.where,
        )

    def grant_lost(self, run: StepRun) -> bool:
        """Whether a step that was lost is tried again."""
        return len(self._lost[run.key]) <= MOST_LOST

    def grant(
        self, run: StepRun, error: ExplainedError, alone: Alone | None = None, largest: int = 0
    ) -> bool:
        """Whether a step that failed so is tried again: for want of memory, once, and not where a process of
        it was too large `alone`, unless a machine has more, `largest` of all."""
        too_large = alone is not None and alone.limit >= largest
        if error.failure is not FailureClass.OUT_OF_MEMORY or run.key in self._first or too_large:
            return False
        self._first[run.key] = run
        return True

    def second(self, step: Step) -> bool:
        """Whether a step's next try is its second; nothing else that compiles should run beside it."""
        return step.key in self._first

    def memory(self, step: Step) -> int:
        """How many bytes the machine of its next try should have: after a first, twice what that had."""
        first = self._first.get(step.key)
        return 2 * (first.memory or first.peak_memory or 0) if first else 0

    def jobs(self, step: Step, limit: int) -> int:
        """How many jobs of `limit` a step may have: after a first try, half of what that had."""
        first = self._first.get(step.key)
        return max(1, min(limit, first.jobs // 2)) if first else limit

    def told(self, run: StepRun, error: ExplainedError, alone: Alone | None = None) -> ExplainedError:
        """The error of a step that failed; for want of memory, with what both tries had, or with what a
        process of it had `alone`."""
        if error.failure is not FailureClass.OUT_OF_MEMORY:
            return error
        if alone is not None:
            return _too_large(error, alone)
        first = self._first.get(run.key)
        if first is None:
            return error
        both = OutOfMemoryError(
            "the step ran out of memory twice",
            cause=f"first {_allowance(first)}; then, alone, {_allowance(run)}",
            detail=error.detail,
            next_step="; ".join(
                (
                    "use a machine with more memory, raise --memory if it is set, or close other programs",
                    *(("rocwright build --jobs 1",) if run.jobs > 1 else ()),
                    "then run again: compiled files are kept",
                )
            ),
            subject=error.subject,
        )
        both.peak_memory = error.peak_memory
        both.issue, both.known_issue, both.remedy = error.issue, error.known_issue, error.remedy
        return both


def _too_large(error: ExplainedError, alone: Alone) -> OutOfMemoryError:
    """No number of jobs gives one process more than there is for all: what it had, and what would help."""
    memory_error = OutOfMemoryError(
        "a single process needs more memory than the whole build may use",
        cause=f"a single process ({alone.kind}) had taken {size(alone.memory)} of at most "
        f"{size(alone.limit)} when it was killed; fewer jobs do not give it more, so it is not retried",
        detail=error.detail,
        next_step="use a machine with more memory, raise --memory if it is set, close other "
        "programs, or make "
        "the recipe need less (without -g, -O1 for that file, no LTO); then run again: compiled "
        "files are kept",
        subject=error.subject,
    )
    memory_error.peak_memory = error.peak_memory
    memory_error.issue, memory_error.known_issue = error.issue, error.known_issue
    memory_error.remedy_unavailable = "fewer jobs do not give a single process more memory"
    return memory_error


def again_line(run: StepRun) -> str:
    """What is said when a step is tried again."""
    return (
        f"  {run.name}: ran out of memory with {_allowance(run)}; retrying it alone "
        f"with {count(max(1, run.jobs // 2), 'job')}"
    )


def lost_line(run: StepRun, event: Lost) -> str:
    """What is said when a lost step is tried again."""
    return f"  {run.name}: lost with {event.where} ({event.cause}); it is tried again"


def _allowance(run: StepRun) -> str:
    limit = f" and at most {size(run.memory)}" if run.memory else ""
    took = f" (it took {size(run.peak_memory)})" if run.peak_memory else ""
    return f"{count(run.jobs, 'job')}{limit}{took}"
