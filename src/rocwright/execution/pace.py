"""How long a step still takes, by what it has counted and by what it took before: arithmetic alone."""

from __future__ import annotations

from dataclasses import dataclass, field

SLOWER = 2.0
"""How many times slower than expected a step may begin before what was expected is doubted."""

DOUBT = 60.0
"""Seconds of counting at one time slower than that, after which what was expected counts half."""


FEWEST = 20
"""Things by which a pace is told at least, where so many are done."""

MOST_KEPT = 256
"""Times that are kept of when how many were done."""


@dataclass(slots=True)
class Marks:
    """When how many things were done; of a long time fewer are kept."""

    _kept: list[tuple[float, int]] = field(default_factory=list)

    def note(self, now: float, done: int) -> None:
        """So many are done now."""
        self._kept.append((now, done))
        if len(self._kept) > MOST_KEPT:
            del self._kept[1 : MOST_KEPT // 2 : 2]

    def each(self, since: float) -> float | None:
        """Seconds for a thing in the later half of the time from `since` to the last mark, and for `FEWEST`
        of them at least: the first may have come from a compiler cache, at ten times the pace. None where
        that is not known."""
        end, done = self._kept[-1] if self._kept else (0.0, 0)
        middle = (since + end) / 2
        before = (one for one in reversed(self._kept) if one[0] <= middle and one[1] <= done - FEWEST)
        at, then = next(before, (0.0, done))
        return (end - at) / (done - then) if done > then else None


def seconds_left(
    done: int,
    all_: int,
    counting: float,
    rest: float,
    idle: float,
    *,
    first: int = 0,
    each: float | None = None,
) -> float:
    """Seconds left of a step that has done so many of all things; all times are in seconds.

    `counting` is how long the counted ones took, without the `first` ones, of which that is not known. `rest`
    is what was left of the expected time when the last of them was done (not above 0 where it was over, or
    nothing was expected), `idle` how long ago that is, `each` what a thing took lately, where that is known.
    The more is done, the more the counter's own pace decides; and the sooner, the slower it is than was
    expected. It falls with the clock until the next thing is due. From then on it rises with the clock:
    nobody knows more than that it takes at least as long again.
    """
    each = counting / max(done - first, 1) if each is None else each
    pace, share = each * (all_ - done), done / all_
    then = pace
    if rest > 0:
        # what begins slower does not make up for it; what begins faster may have begun with what is easy
        doubt = max(0.0, pace / rest - SLOWER) * counting / DOUBT
        trust = (1 - share) / (1 + doubt)
        then = pace * (1 - trust) + rest * trust
    due = then / (all_ - done) if done < all_ else 0.0
    return then - idle if idle <= due else then - due + (idle - due)
