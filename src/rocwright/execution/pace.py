"""How long a step still takes, by what it has counted and by what it took before: arithmetic alone."""

from __future__ import annotations

from dataclasses import dataclass, field

# How many times slower than expected a step may begin before what was expected is doubted.
SLOWER = 2.0

# Seconds of counting at one time slower than that, after which what was expected counts half.
DOUBT = 60.0


# Things by which a pace is told at least, where so many are done.
FEWEST = 20

# Times that are kept of when how many were done.
MOST_KEPT = 256


@dataclass(slots=True)
class Marks:
    """When how many things were done; of a long time fewer are kept."""

    _kept: list[tuple[float, int]] = field(default_factory=list)

    def note(self, clock: float, count: int) -> None:
        """So many are done now."""
        self._kept.append((clock, count))
        if len(self._kept) > MOST_KEPT:
            del self._kept[1 : MOST_KEPT // 2 : 2]

    def each(self, since: float) -> float | None:
        """Seconds for a thing in the later half of the time from `since` to the last mark, and for `FEWEST`
        of them at least: the first may have come from a compiler cache, at ten times the pace. None where
        that is not known."""
        end, total = self._kept[-1] if self._kept else (0.0, 0)
        middle = (since + end) / 2
        earlier = (mark for mark in reversed(self._kept) if mark[0] <= middle and mark[1] <= total - FEWEST)
        start, then = next(earlier, (0.0, total))
        return (end - start) / (total - then) if total > then else None


def seconds_left(
    finished: int,
    all_: int,
    counting: float,
    expected: float,
    idle: float,
    *,
    first: int = 0,
    unit_time: float | None = None,
) -> float:
    """Seconds left of a step that has done so many of all things; all times are in seconds.

    `counting` is how long the counted ones took, without the `first` ones, of which that is not known.
    `expected` is what was left of the expected time when the last of them was done (not above 0 where it was
    over, or nothing was expected), `idle` how long ago that is, `unit_time` what a thing took lately, where
    that is known.
    The more is done, the more the counter's own pace decides; and the sooner, the slower it is than was
    expected. It falls with the clock until the next thing is due. From then on it rises with the clock:
    nobody knows more than that it takes at least as long again.
    """
    unit_time = counting / max(finished - first, 1) if unit_time is None else unit_time
    pace, share = unit_time * (all_ - finished), finished / all_
    then = pace
    if expected > 0:
        # what begins slower does not make up for it; what begins faster may have begun with what is easy
        doubt = max(0.0, pace / expected - SLOWER) * counting / DOUBT
        trust = (1 - share) / (1 + doubt)
        then = pace * (1 - trust) + expected * trust
    due = then / (all_ - finished) if finished < all_ else 0.0
    return then - idle if idle <= due else then - due + (idle - due)
