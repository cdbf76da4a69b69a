"""How many processes there may be now, and which must wait: a pure function of what is seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rocwright.build.jobs.learn import Learnt
from rocwright.build.jobs.processes import Seen
from rocwright.build.jobs.room import Room

PERIOD = 0.5
"""Seconds between two looks where nothing presses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNow:
    """A step under way. `memory` is what its recipe reckons one job with, in bytes (0: it does not say).

    `shares` tells that its tools are clients of the job server. A step that does not share has `jobs`
    processes of its own, whatever is decided here, save that they can be paused. `begun` is on the
    monotonic clock.
    """

    name: str
    component: str
    memory: int
    jobs: int
    shares: bool
    begun: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to be done until the next look.

    `tokens` is how many processes there may be in all, of all steps: each step's first one counted, and the
    `jobs` of steps that do not share. `pause` and `resume` are what to stop and to let go on. `why` is for
    people ("memory: 12 of 16 jobs"), "" where nothing holds the build back. `next` is when to look again,
    in seconds.
    """

    tokens: int
    pause: tuple[Seen, ...] = ()
    resume: tuple[Seen, ...] = ()
    why: str = ""
    next: float = PERIOD


def decide(
    room: Room,
    seen: Sequence[Seen],
    steps: Sequence[StepNow],
    learnt: Learnt,
    before: Decision | None,
    most: int,
) -> Decision:
    """What to do now, never more than `most` processes in all. `before` is the last decision, None at
    first."""
    return Decision(tokens=most)
