"""How long steps took on this machine: the one place that asks its history."""

from __future__ import annotations

from collections.abc import Iterator

from rocwright.build.runs import runs
from rocwright.home import Home
from rocwright.models import Frozen


class Took(Frozen):
    """A step that was built: in wall seconds, with so many jobs.

    `cached` is the part of the compilations that the compiler cache had, 0 to 1; `counted` how many things
    ninja or make counted in all, 0 where they counted nothing.
    """

    name: str
    stack: str
    seconds: float
    jobs: int = 1
    cached: float = 0
    counted: int = 0


def took(home: Home) -> Iterator[Took]:
    """Every step that was built on this machine, newest first."""
    for run in runs(home.runs):
        for step in run.steps:
            if step.outcome == "built":
                counts = step.compiler_cache
                hits, all_ = counts.get("hit", 0), sum(counts.values())
                yield Took(
                    name=step.name,
                    stack=run.stack,
                    seconds=step.seconds,
                    jobs=max(step.jobs, 1),
                    cached=hits / all_ if all_ else 0,
                    counted=step.counted,
                )
