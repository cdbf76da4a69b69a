"""How long a step still takes, by what it has counted and by what it took before: arithmetic alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from rocbase.units import duration

# How many times slower than expected a step may begin before what was expected is doubted.
SLOWER = 2.0

# Seconds of counting at one time slower than that, after which what was expected counts half.
DOUBT = 60.0


# Things by which a pace is told at least, where so many are done.
FEWEST = 20

# Times that are kept of when how many were done.
MOST_KEPT = 256

# Seconds by which the end that is shown moves at most in a second, and how many seconds left add as much: the
# time left grows e-fold in five minutes. Without it, a build under load showed 6, 84, 3 and 33 min in turn.
STEADY, STEADY_OF = 1.25, 300.0

# The share up to which the time left is a range, from half of it to its double at first.
VAGUE = 0.1


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


@dataclass(slots=True)
class Calm:
    """The time left as it is shown: it follows the estimates, but does not jump with them."""

    _end: float | None = None
    _clock: float = 0

    def follow(self, remaining: float, clock: float) -> float:
        """Return the seconds to show at a time at which so many are estimated."""
        end = clock + remaining
        if self._end is not None:
            shift = (clock - self._clock) * (STEADY + max(0.0, self._end - clock) / STEADY_OF)
            end = min(max(end, self._end - shift), self._end + shift)
        self._end, self._clock = max(end, clock), clock
        return self._end - clock


def left_text(seconds: float, share: float) -> str:
    """Return the time left for people: a range while less than `VAGUE` is done, narrower the more is."""
    factor = 2 - share / VAGUE
    if factor <= 1:
        return f"{duration(seconds)} left"
    unit, label = next((unit, label) for unit, label in _UNITS if seconds / factor >= unit or unit == 1)
    low, high = (max(1, round(bound / unit)) for bound in (seconds / factor, seconds * factor))
    return f"{low} to {high} {label} left" if low < high else f"{low} {label} left"


_UNITS = ((3600, "h"), (60, "min"), (1, "s"))


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
