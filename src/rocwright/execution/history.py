"""How long steps took on this machine: the one place that asks its history."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rocbase.errors import ExplainedError
from rocbase.model import Frozen
from rocwright.home import Home
from rocwright.records.opening import read_records
from rocwright.records.place import there
from rocwright.records.plain import open_plain


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
    """Every step that was built on this machine, newest first: each of each stack as it was last built."""
    # a build does not fail for its history
    with contextlib.suppress(ExplainedError):
        if there(home):
            with contextlib.closing(open_plain(home) or read_records(home)) as records:
                past = records.times()
            for step in past:
                yield Took(
                    name=step.name,
                    stack=step.stack,
                    seconds=step.seconds,
                    jobs=max(step.jobs, 1),
                    cached=step.cached,
                    counted=step.counted,
                )
