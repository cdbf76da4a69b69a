"""How far a run is, and how long it still takes where its steps were built here before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rocbase.units import duration
from rocwright.records.model import Run, StepRun, StepTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """A run under way: how many of its steps have ended, the names of those that run, the time that is
    left in words, "" where nobody can tell, and the share that is done, 0 to 1: of the time, or else of the
    steps."""

    run: Run
    ended: int
    steps: int
    now: tuple[str, ...]
    left: str
    share: float

    @property
    def words(self) -> str:
        """How far it is, in words."""
        ended = f"{self.ended} of {self.steps} step{'s' * (self.steps != 1)}"
        running = f"now {', '.join(self.now)}" if self.now else ""
        return " · ".join(filter(None, (ended, running, self.left)))


def in_a_word(run: Run) -> str:
    """A run for the title of a tab that is left open: how it stands comes first."""
    latest = {step.name: step for step in run.steps}
    stands = run.outcome or run.state
    if run.state == "running" and latest:
        stands = f"{sum(step.state == 'ended' for step in latest.values())} of {len(latest)}"
    return f"{stands}: {run.command} {run.stack} {', '.join(run.gpu)}"


def going(run: Run, times: Sequence[StepTime], moment: datetime | None = None) -> Going:
    """A run as it stands; `times` say what steps took when they were last built."""
    latest = {step.name: step for step in run.steps}
    moment = moment or datetime.now(UTC)
    remaining = seconds_left(run, times, moment)
    ended = sum(step.state == "ended" for step in latest.values())
    elapsed = seconds_since(run.started, moment)
    return Going(
        run=run,
        ended=ended,
        steps=len(latest),
        now=tuple(name for name, step in latest.items() if step.state == "running"),
        left=_words(remaining),
        share=elapsed / (elapsed + remaining)
        if remaining and elapsed is not None
        else ended / (len(latest) or 1),
    )


def seconds_left(run: Run, times: Sequence[StepTime], moment: datetime) -> float | None:
    """Seconds to the end along the longest way through the steps that wait for each other; None where a step
    was never built here, or takes longer than it did."""
    # the last that is told stands: the newest, and of this stack where it has one
    ordered = sorted(times, key=lambda timing: timing.stack != run.stack)
    took = {timing.name: timing.seconds for timing in reversed(ordered)}
    latest = {step.name: step for step in run.steps}
    ends: dict[str, float] = {}
    open_ = [step for step in latest.values() if step.state != "ended"]
    while open_:
        # those whose needs are known; where they wait for each other in a circle there is no telling
        ready = [step for step in open_ if all(name in ends or _over(latest, name) for name in step.needs)]
        if not ready:
            return None
        for step in ready:
            wants = _remaining(step, took, moment)
            if wants is None:
                return None
            ends[step.name] = wants + max((ends.get(name, 0.0) for name in step.needs), default=0.0)
        open_ = [step for step in open_ if step.name not in ends]
    return max(ends.values(), default=None)


def _over(latest: dict[str, StepRun], name: str) -> bool:
    return name not in latest or latest[name].state == "ended"


def _remaining(step: StepRun, took: dict[str, float], moment: datetime) -> float | None:
    total = took.get(step.name)
    if total is None:
        return None
    if step.state != "running" or not step.started:
        return total
    elapsed = seconds_since(step.started, moment) or 0.0
    return total - elapsed if elapsed <= total else None


def seconds_since(started: str, moment: datetime) -> float | None:
    """Seconds from a time on record on, None where that is no time."""
    try:
        return max(0.0, (moment - datetime.fromisoformat(started)).total_seconds())
    except (ValueError, TypeError):
        return None


def _words(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 60:
        return "less than a minute left"
    return f"about {duration(seconds) if seconds >= 3600 else f'{seconds / 60:.0f} min'} left"
