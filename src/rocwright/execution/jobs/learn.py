"""Remembers the memory that compilers and linkers took: by component, step and kind, and by single job."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from threading import Lock
from typing import Annotated

from filelock import FileLock
from pydantic import Field, ValidationError

from rocbase.files.atomic import write_atomic
from rocbase.model import Frozen
from rocwright.execution.jobs.processes import ProcessKind
from rocwright.home import Home

# Bytes that a job is expected to take if neither its recipe nor an earlier job says.
UNKNOWN = 1024**3

# With more peaks known of a sort, the older ones count half.
MOST_COUNT = 512

# Sorts that the file keeps, and single jobs of each: those of the latest builds.
MOST_SORTS, MOST_UNITS = 1000, 4096

# Bytes that most compilers stay under: beyond them, doubt counts little.
PLAUSIBLE = 5 * 1024**3 // 4

_MIB = 1024**2
_Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Mib = Annotated[int, Field(ge=1, le=2**24)]


class Peaks(Frozen):
    """Peaks of one sort of job: their weight, their sum and the largest, in bytes.

    `area` is the sum of bytes times the `seconds` of a processor for which jobs held them.
    """

    count: _Number = 0
    total: _Number = 0
    largest: _Number = 0
    area: _Number = 0
    seconds: _Number = 0

    def plus(self, new: Peaks) -> Peaks:
        """Add newer peaks. Old ones fade as new ones come in."""
        share = 0.5 if self.count > MOST_COUNT / 2 and new.count else 1.0
        count = self.count * share + new.count
        fades = 1 - new.count / count / 2 if count else 1.0
        return Peaks(
            count=count,
            total=self.total * share + new.total,
            largest=max(new.largest, self.largest * fades),
            area=self.area * share + new.area,
            seconds=self.seconds * share + new.seconds,
        )

    def usual(self, otherwise: int) -> int:
        """Return the mean peak, `otherwise` if less than one is known."""
        return round(self.total / self.count) if self.count >= 1 else otherwise

    def mean(self) -> float:
        """Return the bytes that a job holds on average while it runs."""
        return self.area / self.seconds if self.seconds else self.total / max(self.count, 1)

    def most(self, resident: int, among: int) -> int:
        """Return what a job may come to, if the largest of its sort that runs holds `resident` bytes.

        That is more than the largest peak: the fewer are known, the more they differ, and the more run at
        once (`among`; one of many is likelier to be larger than all before), the more.
        """
        top = max(self.largest, resident)
        among = min(among, 6)
        doubt = 1 / (1 + self.count / (6 * among))
        if self.count >= 4:
            doubt *= min(1.0, 1.25 * among * (top * self.count / self.total - 1))
        return round(max(top * (1.02 + 0.2 * doubt), min(top * (1 + doubt), PLAUSIBLE)))


class _File(Frozen):
    """The content of job-memory.json. `units` are the peaks of single jobs in MiB, by sort and name."""

    format: Annotated[int, Field(ge=2, le=2)] = 2
    sorts: dict[str, Peaks] = Field(default_factory=dict)
    units: dict[str, dict[str, _Mib]] = Field(default_factory=dict)


class Learnt:
    """The peaks of earlier builds and of this one. Any thread may ask and add.

    `set_aside` is the path to which an unreadable file was moved.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = Lock()
        self._known, self._new = _File(), _File()
        self.set_aside: Path | None = None

    @classmethod
    def load(cls, home: Home) -> Learnt:
        """Read what the home folder remembers, and set a damaged file aside."""
        learnt = cls(home.job_memory)
        learnt._known = learnt._read()
        return learnt

    def peaks(self, component: str, step: str, kind: ProcessKind) -> Peaks:
        """Return the peaks of a sort."""
        name = _name(component, step, kind)
        earlier, new = self._known.sorts.get(name, Peaks()), self._new.sorts.get(name)
        return earlier if new is None else earlier.plus(new)

    def unit(self, component: str, step: str, kind: ProcessKind, unit: str) -> int:
        """Return the peak of one job in the last build that had it, 0 if it is not known."""
        return self._known.units.get(_name(component, step, kind), {}).get(unit, 0) * _MIB

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
        """Add a job that has ended, with its `peak`, and the `seconds` for which it worked.

        `area` is the sum of bytes times seconds (None: the peak all the time). A job of less than a second
        counts for little: the checks of a configure step say nothing about the compilers after it.
        """
        name, weight = _name(component, step, kind), min(1.0, seconds**2)
        area = peak * seconds if area is None else area
        job = Peaks(count=weight, total=weight * peak, largest=peak, area=area, seconds=seconds)
        with self._lock:
            old = self._new.sorts.get(name, Peaks())
            largest = max(old.largest, peak * (weight >= 0.5))
            self._new.sorts[name] = old.plus(job).model_copy(update={"largest": largest})
            if unit:
                units = self._new.units.setdefault(name, {})
                units[unit] = max(math.ceil(peak / _MIB), 1, units.pop(unit, 0))

    def save(self) -> None:
        """Add what is new to the file, and to what other builds wrote there meanwhile."""
        with self._lock:
            if self._path is None or not self._new.sorts:
                return
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self._path}.lock"):
                self._known = _merged(self._read(), self._new)
                write_atomic(self._path, self._known.model_dump_json() + "\n")
            self._new = _File()

    def _read(self) -> _File:
        assert self._path is not None
        try:
            return _File.model_validate(json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            return _File()
        except (OSError, ValueError, RecursionError, ValidationError):
            aside = self._path.with_name(f"{self._path.name}.damaged")
            with contextlib.suppress(OSError):
                self._path.replace(aside)
                self.set_aside = aside
            return _File()


def _merged(old: _File, new: _File) -> _File:
    """Add the new sorts and units to the old ones: the latest come last, and stay."""
    sorts, units = dict(old.sorts), dict(old.units)
    for name, peaks in new.sorts.items():
        sorts[name] = sorts.pop(name, Peaks()).plus(peaks)
        added = new.units.get(name, {})
        both = {unit: size for unit, size in units.get(name, {}).items() if unit not in added} | added
        units[name] = dict([*both.items()][-MOST_UNITS:])
    names = [*sorts][-MOST_SORTS:]
    return _File(
        sorts={name: sorts[name] for name in names},
        units={name: units[name] for name in names if units.get(name)},
    )


def _name(component: str, step: str, kind: ProcessKind) -> str:
    return f"{component}\t{step}\t{kind.value}"
