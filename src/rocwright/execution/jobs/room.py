"""How much memory there is for a build: of the machine, of every cgroup above, and of what the user
allows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rocwright.execution.jobs.kernel import table, text
from rocwright.sandbox import cgroup
from rocwright.sandbox.cgroup import Cgroup

MEMINFO = Path("/proc/meminfo")
PRESSURE = Path("/proc/pressure/memory")

_HELD_V2 = (
    "anon",
    "shmem",
    "slab_unreclaimable",
    "kernel_stack",
    "pagetables",
    "sec_pagetables",
    "percpu",
    "sock",
)
"""What of a cgroup's memory cannot be dropped (Linux Documentation/admin-guide/cgroup-v2.rst)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """PSI of memory, "full": the share of the last ten seconds in which nothing else was done than to wait
    for memory (0 to 1), and the seconds of it since boot."""

    full: float
    total: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBudget:
    """Memory in bytes, as the tightest of all bounds has it: that under which the least can still be taken.

    `used` is what cannot be dropped under pressure: file cache is no use of memory. `available` is what can
    still be taken, `bound` what bounds it: "machine", "limit" (the user's), or a cgroup's folder. `limit` is
    the user's bound for the whole build, None for none. `pressure` is that of the same bound, None where the
    kernel does not tell. `shared` says that other builds are within that bound too.
    """

    total: int
    used: int
    available: int
    bound: str = "machine"
    limit: int | None = None
    pressure: Pressure | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class _Bound:
    """`shared` says whether other builds are within it too, `late` whether `used` may be seconds old."""

    name: str
    total: int
    used: int
    pressure: Path | None = None
    shared: bool = True
    late: bool = False

    @property
    def left(self) -> int:
        return max(0, self.total - self.used)


@dataclass(frozen=True, slots=True)
class _Sum:
    """What the kernel told, what processes were seen to have then, and what all else had, in bytes."""

    told: int
    seen: int
    rest: int


class Sums:
    """What cgroups are told to use, from look to look, made right by what processes have now.

    The kernel adds up for memory.stat every two seconds (Linux, mm/memcontrol.c, FLUSH_TIME), and a compiler
    takes hundreds of MiB in that time. What else is in a cgroup (rocwright itself, other programs, files in
    memory) changes slowly: it is what is left of each sum once the processes seen are taken off.
    """

    def __init__(self) -> None:
        self._last: dict[str, _Sum] = {}

    def now(self, name: str, reported: int, measured: int) -> int:
        """Bytes in use now in a cgroup of which the kernel tells so much, where processes have `measured`."""
        last = self._last.get(name) or _Sum(reported, measured, max(0, reported - measured))
        remainder = last.rest
        if reported != last.told:
            # it was added up at some time between the two looks
            lower, upper = sorted(max(0, reported - reading) for reading in (measured, last.seen))
            remainder = min(max(remainder, lower), upper)
        self._last[name] = _Sum(reported, measured, remainder)
        return measured + remainder


def read_room(
    limit: int | None,
    group: Cgroup | None,
    sandboxes: Sequence[Path] = (),
    own: int = 0,
    foreign: int = 0,
    sums: Sums | None = None,
) -> MemoryBudget:
    """Look now. `group` is the cgroup of the whole build, None where there is none; `sandboxes` are the
    folders of its sandboxes' cgroups. `own` is what the build's processes have, in bytes, for where no cgroup
    counts them, or counts late, and `foreign` what those of other builds have. `sums` are those of the looks
    before. Never raises.
    """
    machine = _machine(text(MEMINFO))
    bounds = [machine, *_cgroups(group, sandboxes, machine.total)]
    if limit is not None:
        used = group.used() if group is not None else 0
        bounds.append(_Bound("limit", limit, used, shared=False, late=True))
    sums = sums or Sums()
    # of a single sandbox it is not known what processes have
    adjusted = [
        bound if Path(bound.name) in sandboxes else _with(bound, own, foreign, sums) for bound in bounds
    ]
    tightest = min(adjusted, key=lambda bound: bound.left)
    return MemoryBudget(
        total=tightest.total,
        used=tightest.used,
        available=tightest.left,
        shared=tightest.shared,
        bound=tightest.name,
        limit=limit,
        pressure=pressure_of(text(tightest.pressure)) if tightest.pressure is not None else None,
    )


def _with(bound: _Bound, own: int, foreign: int, sums: Sums) -> _Bound:
    measured = own + foreign if bound.shared else own
    used = sums.now(bound.name, bound.used, measured) if bound.late else max(bound.used, measured)
    return replace(bound, used=used)


def free_memory() -> int:
    """Bytes that the machine has left, whatever bounds a build."""
    return _machine(text(MEMINFO)).left


def pressure_of(words: str) -> Pressure | None:
    """What a file of PSI says; None where it says nothing (no PSI, or not for this)."""
    for line in words.splitlines():
        kind, *pairs = line.split()
        fields = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        if kind == "full":
            try:
                return Pressure(full=float(fields["avg10"]) / 100, total=int(fields["total"]) / 1e6)
            except (KeyError, ValueError):
                return None
    return None


def _machine(words: str) -> _Bound:
    """Of /proc/meminfo; kernels before 3.14 do not tell what is available."""
    meminfo = table(words.replace(":", " "))
    if "MemTotal" not in meminfo:
        page = os.sysconf("SC_PAGE_SIZE")
        total, available = os.sysconf("SC_PHYS_PAGES") * page, os.sysconf("SC_AVPHYS_PAGES") * page
    else:
        older = sum(meminfo.get(name, 0) for name in ("MemFree", "Buffers", "Cached")) - meminfo.get(
            "Shmem", 0
        )
        total, available = meminfo["MemTotal"] * 1024, meminfo.get("MemAvailable", older) * 1024
    return _Bound("machine", total, total - available, PRESSURE)


def _cgroups(group: Cgroup | None, sandboxes: Sequence[Path], total: int) -> Iterator[_Bound]:
    """The limits of the sandboxes, of the build's own cgroup, and of all above it, or above this process.

    Only those below `total`: of others it is not read what they use, which takes longer than all else here.
    """
    starts = [group.folder] if group is not None else [place.folder.parent for place in cgroup.places("any")]
    folders = [folder for start in starts for folder in (start, *start.parents)]
    for folder in dict.fromkeys([*sandboxes, *folders]):
        if folder.is_relative_to(cgroup.MOUNT):
            bound = _first(folder, total) or _second(folder, total)
            if bound is not None:
                mine = folder in sandboxes or (group is not None and folder.is_relative_to(group.folder))
                yield replace(bound, shared=not mine)


def _first(folder: Path, total: int) -> _Bound | None:
    """Version 1. Its own names are those without `total_`, which leave out what lies below."""
    limit = text(folder / "memory.limit_in_bytes").strip()
    if not limit.isdigit() or int(limit) >= total:
        return None
    stat = table(text(folder / "memory.stat"))
    return _Bound(str(folder), int(limit), stat.get("total_rss", 0) + stat.get("total_shmem", 0), late=True)


def _second(folder: Path, total: int) -> _Bound | None:
    """Version 2. Above `memory.high` processes are slowed down until nothing moves: it counts as a limit."""
    limits = [text(folder / name).strip() for name in ("memory.max", "memory.high")]
    numbers = [int(limit) for limit in limits if limit.isdigit()]
    if not numbers or min(numbers) >= total:
        return None
    stat = table(text(folder / "memory.stat"))
    used = sum(stat.get(name, 0) for name in _HELD_V2)
    return _Bound(str(folder), min(numbers), used, folder / "memory.pressure", late=True)
