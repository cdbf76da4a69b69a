"""How long a step still takes, by what it has counted and by what it took before: arithmetic alone."""

from __future__ import annotations


def seconds_left(done: int, all_: int, counting: float, rest: float, idle: float) -> float:
    """Seconds left of a step that has done so many of all things; all times are in seconds.

    `counting` is how long the counted ones took, `rest` what was left of the expected time when the last of
    them was done (not above 0 where it was over, or nothing was expected), `idle` how long ago that is. The
    more is done, the more the counter's own pace decides. It falls with the clock until the next thing is
    due. From then on it rises with the clock: nobody knows more than that it takes at least as long again.
    """
    pace, share = counting / done * (all_ - done), done / all_
    then = pace if rest <= 0 else pace * share + rest * (1 - share)
    due = then / (all_ - done) if done < all_ else 0.0
    return then - idle if idle <= due else then - due + (idle - due)
