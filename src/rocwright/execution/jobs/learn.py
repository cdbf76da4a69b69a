"""What jobs were found to take in memory: by component, step and kind, kept from build to build.

Each sort has a histogram of peaks in steps of an eighth of a doubling: small, and two of them add up. Its
weight is bounded, so that what was long ago fades as new builds come in.
"""

from __future__ import annotations

import contextlib
import json
import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Annotated

from filelock import FileLock
from pydantic import Field, ValidationError

from rocwheel.files.atomic import write_atomic
from rocwheel.model import Frozen
from rocwright.execution.jobs.processes import Kind
from rocwright.home import Home

MOST_WEIGHT = 512
"""Peaks that one sort remembers; with more, all of them count half."""

FORGOTTEN_DAYS = 400
"""A sort that no build had for so long is dropped."""

_UNIT = 1024**2
_STEPS = 8
_HIGH = 0.99
_ALONE = 0.3
"""How much jobs are held to differ where one is known; those of a component mostly do so by more."""

_LAST = 200

_Number = Annotated[int, Field(ge=0, le=_LAST)]
_Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Peaks:
    """Peaks of one sort of job: bytes with weights. Asked with what a job already holds, in bytes."""

    __slots__ = ("_bytes", "_doubt", "_products", "_weights")

    def __init__(self, found: Iterable[tuple[int, float]]) -> None:
        rows = sorted(row for row in found if row[1] > 0)
        self._bytes = [size for size, _ in rows]
        self._weights = list(accumulate((weight for _, weight in rows), initial=0.0))
        self._products = list(accumulate((size * weight for size, weight in rows), initial=0.0))
        self._doubt = _doubt(rows)

    def usual(self, held: int = 0) -> int:
        """What a job that holds so much comes to on average, of those known to have held as much."""
        at = bisect_left(self._bytes, held)
        weight = self._weights[-1] - self._weights[at]
        return round((self._products[-1] - self._products[at]) / weight) if weight > 0 else self.most(held)

    def most(self, held: int = 0) -> int:
        """What it may come to: the 99th of a hundred of those, and some more where few are known."""
        at = bisect_left(self._bytes, held)
        weight = self._weights[-1] - self._weights[at]
        high = held
        if weight > 0:
            wanted = self._weights[at] + weight * _HIGH
            high = self._bytes[bisect_left(self._weights, wanted, lo=at + 1) - 1]
        return round(high * (1 + self._doubt))


def _doubt(rows: Sequence[tuple[int, float]]) -> float:
    """By which share a peak may pass those known: more where they differ, and where they are few."""
    count = sum(weight for _, weight in rows)
    if not count:
        return 1.0
    mean = sum(size * weight for size, weight in rows) / count
    spread = math.sqrt(sum(weight * (size - mean) ** 2 for size, weight in rows) / count) / max(mean, 1)
    return min(1.0, 1.5 * max(spread, _ALONE / count)) / math.sqrt(1 + count)


class _Sort(Frozen):
    """`bins` are weights by the number of the bin, `at` the day of the last build that had it."""

    bins: dict[_Number, _Weight] = Field(default_factory=dict)
    at: str = ""


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
        self._new: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        self._made: dict[tuple[str, int], Peaks] = {}
        self.set_aside: Path | None = None

    @classmethod
    def load(cls, home: Home) -> Learnt:
        """What is kept in the home folder; a damaged file is set aside, and nothing is known."""
        learnt = cls(home.job_memory)
        learnt._known = learnt._read()
        return learnt

    def peaks(self, component: str, step: str, kind: Kind, otherwise: int) -> Peaks:
        """Peaks of a sort; `otherwise` bytes count as one more that was seen, which is all where none was."""
        name = _name(component, step, kind)
        with self._lock:
            found = self._made.get((name, otherwise))
            if found is None:
                kept = self._known.get(name, _Sort()).bins
                rows = [*kept.items(), *self._new.get(name, {}).items()]
                found = Peaks([(otherwise, 1.0), *((_size(number), weight) for number, weight in rows)])
                self._made[name, otherwise] = found
            return found

    def knows(self, component: str, step: str, kind: Kind) -> bool:
        """Whether a job of that sort has ended: in this build, or in an earlier one."""
        name = _name(component, step, kind)
        with self._lock:
            return name in self._known or name in self._new

    def note(self, component: str, step: str, kind: Kind, peak: int) -> None:
        """A job has ended that had held `peak` bytes at most."""
        name = _name(component, step, kind)
        with self._lock:
            self._new[name][_bin(peak)] += 1
            for key in [key for key in self._made if key[0] == name]:
                del self._made[key]

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


def _merged(
    known: Mapping[str, _Sort], new: Mapping[str, Mapping[int, float]], now: datetime
) -> dict[str, _Sort]:
    found = {name: sort for name, sort in known.items() if not _forgotten(sort.at, now)}
    for name, bins in new.items():
        both: dict[int, float] = defaultdict(float, known.get(name, _Sort()).bins)
        for number, weight in bins.items():
            both[number] += weight
        while sum(both.values()) > MOST_WEIGHT:
            both = defaultdict(float, {number: weight / 2 for number, weight in both.items()})
        kept = {number: round(weight, 4) for number, weight in sorted(both.items()) if weight >= 1 / 8}
        found[name] = _Sort(bins=kept, at=now.date().isoformat())
    return found


def _forgotten(day: str, now: datetime) -> bool:
    try:
        return (now.date() - datetime.fromisoformat(day).date()).days > FORGOTTEN_DAYS
    except ValueError:
        return True


def _name(component: str, step: str, kind: Kind) -> str:
    return f"{component}\t{step}\t{kind.value}"


def _bin(peak: int) -> int:
    return min(_LAST, math.ceil(_STEPS * math.log2(max(peak, _UNIT) / _UNIT)))


def _size(number: int) -> int:
    """The upper edge of a bin."""
    return round(_UNIT * 2 ** (number / _STEPS))
