"""Reads how much memory a build has: of the machine, of every cgroup above, and of the user's limit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rocwright.sandbox import cgroup
from rocwright.sandbox.cgroup import Cgroup

MACHINE = "machine"
PRESSURE = Path("/proc/pressure/memory")
MEMORY = Path("/proc/meminfo")

# The memory of a cgroup that cannot be dropped (Linux Documentation/admin-guide/cgroup-v2.rst).
_UNDROPPABLE = (
    *("anon", "shmem", "slab_unreclaimable", "kernel_stack", "pagetables", "sec_pagetables", "percpu"),
    "sock",
)


def text(path: Path | str) -> str:
    """Read one of the kernel's small files quickly, "" if it cannot be read. At most 64 KiB."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(file, 1 << 16).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """PSI of memory, "full": the share of the last ten seconds in which everything waited for it (0 to 1),
    and the seconds of that since boot."""

    full: float
    total: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBudget:
    """Memory in bytes within one bound: "machine", "limit" (the user's), or a cgroup's folder.

    `used` is what cannot be dropped under pressure, so no file cache. `pressure` is None if the kernel does
    not report it. `shared` says that other builds are within the bound, too.
    """

    total: int
    used: int
    bound: str = MACHINE
    pressure: Pressure | None = None
    shared: bool = False

    @property
    def available(self) -> int:
        """Return the bytes that can still be taken."""
        return max(0, self.total - self.used)


class Sums:
    """Corrects what cgroups report, from look to look, by what processes have now.

    The kernel adds up memory.stat every two seconds (Linux, mm/memcontrol.c, FLUSH_TIME), and a compiler
    takes hundreds of MiB in that time. The rest of a cgroup (rocwright itself, other programs, files in
    memory) changes slowly: it is each sum without the processes of that time.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, int, int]] = {}

    def now(self, name: str, reported: int, measured: int) -> int:
        """Return the bytes in use in a cgroup that reports so much, where processes have `measured`."""
        last_report, last_measured, remainder = self._last.get(
            name, (reported, measured, max(0, reported - measured))
        )
        if reported != last_report:
            # the kernel added up at some time between the two looks
            lower, upper = sorted(max(0, reported - reading) for reading in (measured, last_measured))
            remainder = min(max(remainder, lower), upper)
        self._last[name] = reported, measured, remainder
        return measured + remainder


def read_room(
    limit: int | None,
    group: Cgroup | None,
    sandboxes: Sequence[Path] = (),
    own: int = 0,
    foreign: int = 0,
    sums: Sums | None = None,
) -> MemoryBudget:
    """Return the tightest of all bounds. Never raises.

    `group` is the cgroup of the whole build, and `sandboxes` are the folders of its sandboxes' cgroups. `own`
    and `foreign` are the bytes that processes of this and of other builds were seen to have: cgroups count
    late. `sums` are those of earlier looks.
    """
    bounds = [_machine(), *_cgroups(group, sandboxes)]
    if limit is not None:
        bounds.append(MemoryBudget(bound="limit", total=limit, used=group.used() if group is not None else 0))
    sums, corrected = sums or Sums(), []
    for bound in bounds:
        measured, used = own + foreign * bound.shared, bound.used
        if bound.bound == MACHINE:
            used = max(used, measured)
        elif Path(bound.bound) not in sandboxes:  # the processes of a single sandbox are not known
            used = sums.now(bound.bound, used, measured)
        corrected.append(replace(bound, used=used))
    return min(corrected, key=lambda bound: bound.available)


def free_memory() -> int:
    """Return the bytes that the machine has left, whatever bounds a build."""
    return _machine().available


def pressure_of(content: str) -> Pressure | None:
    """Parse a file of PSI; None if it says nothing."""
    for line in content.splitlines():
        kind, *pairs = line.split()
        fields = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        if kind == "full":
            try:
                return Pressure(full=float(fields["avg10"]) / 100, total=int(fields["total"]) / 1e6)
            except (KeyError, ValueError):
                return None
    return None


def _memory() -> dict[str, int]:
    """The machine's counts of memory by name, in bytes."""
    # psutil gives the same: importing it takes 28 ms of the 450 that a build with nothing to do takes
    rows = (line.split() for line in text(MEMORY).splitlines())
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if row[2:] == ["kB"]}


def _machine() -> MemoryBudget:
    memory = _memory()
    return MemoryBudget(
        total=memory["MemTotal"],
        used=memory["MemTotal"] - memory["MemAvailable"],
        pressure=pressure_of(text(PRESSURE)),
        shared=True,
    )


def _cgroups(group: Cgroup | None, sandboxes: Sequence[Path]) -> Iterator[MemoryBudget]:
    """Return the limits of the sandboxes, of the build's own cgroup, and of all above it or this process."""
    starts = [group.folder] if group is not None else [place.folder.parent for place in cgroup.places("any")]
    folders = [folder for start in starts for folder in (start, *start.parents)]
    total = _memory()["MemTotal"]
    for folder in dict.fromkeys([*sandboxes, *folders]):
        if not folder.is_relative_to(cgroup.MOUNT):
            continue
        # above `memory.high`, processes are slowed down until nothing moves: it counts as a limit
        names = ("memory.limit_in_bytes", "memory.max", "memory.high")
        limits = [int(limit) for name in names if (limit := text(folder / name).strip()).isdigit()]
        # the use of the others is not read: that takes longer than all else here
        if limits and min(limits) < total:
            mine = folder in sandboxes or (group is not None and folder.is_relative_to(group.folder))
            yield MemoryBudget(
                bound=str(folder),
                total=min(limits),
                used=_used(text(folder / "memory.stat")),
                pressure=pressure_of(text(folder / "memory.pressure")),
                shared=not mine,
            )


def _used(stat: str) -> int:
    """Sum what cannot be dropped: in version 1 under `total_` names, which include what lies below."""
    fields = {pair[0]: int(pair[1]) for line in stat.splitlines() if len(pair := line.split()) == 2}
    names = ("total_rss", "total_shmem") if "total_rss" in fields else _UNDROPPABLE
    return sum(fields.get(name, 0) for name in names)
