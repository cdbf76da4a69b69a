"""What jobs were found to take in memory: by component, step and kind, kept from build to build.

Each sort has a histogram of peaks in steps of an eighth of a doubling: small, and two of them add up. Its
weight is bounded, so that what was long ago fades as new builds come in. Beside it the peaks of single jobs
are kept, by a name made of their command line.
"""

from __future__ import annotations

import contextlib
import json
import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Annotated

from filelock import FileLock
from pydantic import Field, ValidationError

from rocbase.files.atomic import write_atomic
from rocbase.model import Frozen
from rocwright.execution.jobs.processes import ProcessKind
from rocwright.home import Home

MOST_WEIGHT = 512
"""Peaks that one sort remembers; with more, all of them count half."""

FORGOTTEN_DAYS = 400
"""A sort that no build had for so long is dropped."""

_UNIT = 1024**2
_STEPS = 8

_FADES = 6
"""With so many known for each that runs at once, the largest is doubted half as much as with one known."""

_FEW, _SPREAD = 4, 1.25
"""From so many on it counts how far the largest lies above the mean: the share of it by which it does, times
this and how many run at once, is how much of the doubt counts."""

MOST_AMONG = 4
"""More that run at once are taken for so many."""

PLAUSIBLE = 5 * 1024**3 // 4
"""Bytes that most compilers stay under: beyond them doubt counts little (`_BEYOND`)."""

_SURE, _BEYOND = 1.02, 0.2
"""Shares of the largest: what one may always come to, and what is added where there is all doubt."""

MOST_UNITS = 4096
"""Single jobs that are remembered of a sort: those of the latest builds."""

_LAST = 200

_Number = Annotated[int, Field(ge=0, le=_LAST)]
_Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Mib = Annotated[int, Field(ge=1, le=2**24)]
_Sum = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Peaks:
    """Peaks of one sort of job: bytes with weights. `guess` counts as long as less than one is known.

    Asked with what a job already holds, in bytes.
    """

    __slots__ = ("_bytes", "_guess", "_largest", "_products", "_weights")

    def __init__(self, samples: Iterable[tuple[int, float]], guess: int = 0) -> None:
        rows = sorted(row for row in samples if row[1] > 0)
        self._guess = guess
        self._bytes = [size for size, _ in rows]
        self._weights = list(accumulate((weight for _, weight in rows), initial=0.0))
        self._products = list(accumulate((size * weight for size, weight in rows), initial=0.0))
        # of what has faded to less than half a job nothing is left
        index = bisect_left(self._weights, self._weights[-1] - 0.5) if rows else 0
        self._largest = self._bytes[max(index, 1) - 1] if rows else 0

    @property
    def count(self) -> float:
        """How many are known."""
        return self._weights[-1]

    def usual(self, resident: int = 0) -> int:
        """What a job that holds so much comes to on average, of those known to have held as much."""
        if self.count < 1:
            return max(self._guess, resident)
        index = bisect_left(self._bytes, resident)
        weight = self._weights[-1] - self._weights[index]
        return (
            round((self._products[-1] - self._products[index]) / weight)
            if weight > 0
            else self.most(resident)
        )

    def most(self, resident: int = 0, sibling: int = 0, among: int = MOST_AMONG) -> int:
        """What it may come to, where one of the same sort that still runs holds `sibling`, and `among` run.

        Somewhat more than the largest: the fewer are known, the more they differ, and the more run at once
        (one of many is likelier to be larger than all before), the more.
        """
        if self.count < 1:
            return max(self._guess, 2 * resident)
        largest = max(self._largest, resident, sibling)
        among = min(among, MOST_AMONG)
        doubt = 1 / (1 + self.count / (_FADES * among))
        if self.count >= _FEW:
            doubt *= min(1.0, _SPREAD * among * (largest * self.count / self._products[-1] - 1))
        return round(max(largest * (_SURE + _BEYOND * doubt), min(largest * (1 + doubt), PLAUSIBLE)))


class _Sort(Frozen):
    """`bins` are weights by the number of the bin, `at` the day of the last build that had it.

    `area` is the sum of bytes times the `seconds` of a processor for which they were held. `units` are the
    peaks of single jobs in the last build that had them, in MiB.
    """

    bins: dict[_Number, _Weight] = Field(default_factory=dict)
    at: str = ""
    area: _Sum = 0
    seconds: _Sum = 0
    units: dict[str, _Mib] = Field(default_factory=dict)


@dataclass(slots=True)
class _New:
    """What this build adds to a sort."""

    bins: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    area: float = 0
    seconds: float = 0
    units: dict[str, int] = field(default_factory=dict)


class _File(Frozen):
    format: int = 1
    sorts: dict[str, _Sort] = Field(default_factory=dict)


class Learnt:
    """What is known, and what this build adds. Any thread may ask and add: it has a lock of its own.

    `set_aside` is where a file that could not be read was moved.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = Lock()
        self._known: Mapping[str, _Sort] = {}
        self._new: dict[str, _New] = defaultdict(_New)
        self._made: dict[tuple[str, int], Peaks] = {}
        self.set_aside: Path | None = None

    @classmethod
    def load(cls, home: Home) -> Learnt:
        """What is kept in the home folder; a damaged file is set aside, and nothing is known."""
        learnt = cls(home.job_memory)
        learnt._known = learnt._read()
        return learnt

    def peaks(self, component: str, step: str, kind: ProcessKind, otherwise: int) -> Peaks:
        """Peaks of a sort; `otherwise` bytes are the guess where less than one is known."""
        name = _name(component, step, kind)
        with self._lock:
            peaks = self._made.get((name, otherwise))
            if peaks is None:
                rows = [*self._known.get(name, _Sort()).bins.items(), *self._entry(name).bins.items()]
                peaks = Peaks([(_size(number), weight) for number, weight in rows], otherwise)
                self._made[name, otherwise] = peaks
            return peaks

    def mean(self, component: str, step: str, kind: ProcessKind) -> float:
        """Bytes that a job of a sort holds on average while it runs, 0 where that is not known."""
        name = _name(component, step, kind)
        with self._lock:
            old, new = self._known.get(name, _Sort()), self._entry(name)
            seconds = old.seconds + new.seconds
            return (old.area + new.area) / seconds if seconds else 0.0

    def unit(self, component: str, step: str, kind: ProcessKind, unit: str) -> int:
        """The peak of one job, by its name, in the last build that had it; 0 where it is not known."""
        return self._known.get(_name(component, step, kind), _Sort()).units.get(unit, 0) * _UNIT

    def note(
        self,
        component: str,
        step: str,
        kind: ProcessKind,
        peak: int,
        *,
        unit: str = "",
        seconds: float = 1.0,
        area: float | None = None,
    ) -> None:
        """A job has ended that had held `peak` bytes at most, and worked for `seconds`.

        `area` is the sum of bytes times seconds (None: the peak all the time). One that took less than a
        second counts for little: checks of a configure step tell nothing of what is compiled after it.
        """
        name = _name(component, step, kind)
        with self._lock:
            new = self._new[name]
            if seconds > 0:
                new.bins[_bin(peak)] += min(1.0, seconds**2)
            new.area += peak * seconds if area is None else area
            new.seconds += seconds
            if unit and (unit in new.units or len(new.units) < MOST_UNITS):
                new.units[unit] = max(math.ceil(peak / _UNIT), 1, new.units.get(unit, 0))
            for key in [key for key in self._made if key[0] == name]:
                del self._made[key]

    def _entry(self, name: str) -> _New:
        return self._new.get(name) or _New()

    def save(self) -> None:
        """Add what is new to the file: also to what other builds wrote there meanwhile."""
        with self._lock:
            if self._path is None or not self._new:
                return
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self._path}.lock"):
                self._known = _merged(self._read(), self._new, datetime.now(UTC))
                write_atomic(self._path, _File(sorts=dict(self._known)).model_dump_json() + "\n")
            self._new.clear()
            self._made.clear()

    def _read(self) -> Mapping[str, _Sort]:
        assert self._path is not None
        try:
            return _File.model_validate(json.loads(self._path.read_bytes())).sorts
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError, ValidationError):
            aside = self._path.with_name(f"{self._path.name}.damaged")
            with contextlib.suppress(OSError):
                self._path.replace(aside)
                self.set_aside = aside
            return {}


def _merged(previous: Mapping[str, _Sort], new: Mapping[str, _New], today: datetime) -> dict[str, _Sort]:
    merged = {name: sort for name, sort in previous.items() if not _forgotten(sort.at, today)}
    for name, added in new.items():
        old = previous.get(name, _Sort())
        both: dict[int, float] = defaultdict(float, old.bins)
        for number, weight in added.bins.items():
            both[number] += weight
        area, seconds = old.area + added.area, old.seconds + added.seconds
        while sum(both.values()) > MOST_WEIGHT:
            both = defaultdict(float, {number: weight / 2 for number, weight in both.items()})
            area, seconds = area / 2, seconds / 2
        bins = {number: round(weight, 4) for number, weight in sorted(both.items()) if weight >= 1 / 8}
        # the latest come last, and stay
        units = {unit: number for unit, number in old.units.items() if unit not in added.units} | added.units
        merged[name] = _Sort(
            bins=bins,
            at=today.date().isoformat(),
            area=round(area),
            seconds=round(seconds, 2),
            units=dict([*units.items()][-MOST_UNITS:]),
        )
    return merged


def _forgotten(day: str, today: datetime) -> bool:
    try:
        return (today.date() - datetime.fromisoformat(day).date()).days > FORGOTTEN_DAYS
    except ValueError:
        return True


def _name(component: str, step: str, kind: ProcessKind) -> str:
    return f"{component}\t{step}\t{kind.value}"


def _bin(peak: int) -> int:
    return min(_LAST, math.ceil(_STEPS * math.log2(max(peak, _UNIT) / _UNIT)))


def _size(number: int) -> int:
    """The upper edge of a bin."""
    return round(_UNIT * 2 ** (number / _STEPS))
