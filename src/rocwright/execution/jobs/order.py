"""In which order can all that runs be finished? (Dijkstra's banker, for processes that grow.)

A process holds memory until it ends, stopped or not; while others wait, one may take all that is left. Where
an order exists in which each finds what it still needs once those before it have ended, the state is safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """Bytes that a process holds, and that it may still want before it ends.

    `behind` is by how many bytes it must lack less than one that goes on, to take its turn. `guessed` says
    that what it wants is a guess: none of its sort has ended.
    """

    holds: int
    wants: int
    behind: int = 0
    guessed: bool = False


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """A job's place in the order: its number, and what is left beside it when its turn comes.

    `spare` below zero: it finds less than it may want, and what it may want is a guess.
    """

    job: int
    spare: int


def order(available: int, jobs: Sequence[ProcessMemory]) -> list[QueuePosition]:
    """All jobs, the next one to finish first: of those that find what they want, the first in `jobs`.

    Where none does, the one that lacks least comes next, and keeps its turn (`behind`): else all would grow
    alike, and none would end. Those of which nothing is known are taken to come to the same, so that the one
    that holds most is the next of them. `jobs` come as they are wished to end.
    """
    alike = max((job.holds + job.wants for job in jobs if job.guessed), default=0)
    lacks = [(alike - job.holds if job.guessed else job.wants) + job.behind for job in jobs]
    waiting = list(range(len(jobs)))
    places = []
    while waiting:
        fits = next((job for job in waiting if jobs[job].wants <= available), None)
        chosen = min(waiting, key=lambda job: lacks[job]) if fits is None else fits
        waiting.remove(chosen)
        places.append(QueuePosition(chosen, available - jobs[chosen].wants))
        available += jobs[chosen].holds
    return places


def may_run(places: Sequence[QueuePosition], steps: Sequence[int]) -> list[bool]:
    """Who may go on, by place: the first one always, and whoever leaves to all before him what they may want.

    `steps` is by how much each could grow until the next look, by its number. A job's growth takes nothing
    from those after it: what it takes, it gives back when it ends.
    """
    spare = inf
    allowed = []
    for place in places:
        goes = spare >= steps[place.job]
        spare = min(spare - steps[place.job] if goes else spare, place.spare)
        allowed.append(goes)
    return allowed
