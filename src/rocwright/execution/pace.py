"""How long a step still takes, by what it has counted and by what it took before: arithmetic alone."""

from __future__ import annotations

SLOWER = 2.0
"""How many times slower than expected a step may begin before what was expected is doubted."""

DOUBT = 60.0
"""Seconds of counting at one time slower than that, after which what was expected counts half."""


def seconds_left(done: int, all_: int, counting: float, rest: float, idle: float, *, first: int = 0) -> float:
    """Seconds left of a step that has done so many of all things; all times are in seconds.

    `counting` is how long the counted ones took, without the `first` ones, of which that is not known. `rest`
    is what was left of the expected time when the last of them was done (not above 0 where it was over, or
    nothing was expected), `idle` how long ago that is. The more is done, the more the counter's own pace
    decides; and the sooner, the slower it is than was expected. It falls with the clock until the next thing
    is due. From then on it rises with the clock: nobody knows more than that it takes at least as long again.
    """
    pace, share = counting / max(done - first, 1) * (all_ - done), done / all_
    then = pace
    if rest > 0:
        # what begins slower does not make up for it; what begins faster may have begun with what is easy
        doubt = max(0.0, pace / rest - SLOWER) * counting / DOUBT
        trust = (1 - share) / (1 + doubt)
        then = pace * (1 - trust) + rest * trust
    due = then / (all_ - done) if done < all_ else 0.0
    return then - idle if idle <= due else then - due + (idle - due)
