"""Is a sandbox full, and does nothing but read again what it had to drop?

At its limit the kernel takes the pages of the programs themselves, which they then fault in again: nothing
ends them, and nothing goes on. Seen with compilers whose own memory came to 99 % of the limit.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from rocbase.processes.outlive import stat_of
from rocwright.sandbox.cgroup import MOUNT, Cgroup

# How long it is left so.
SECONDS = 30.0

# The share of a limit that cannot be dropped from which on a cgroup is full.
FULL = 0.95

# The share of one processor that is less than any work.
WORK = 0.01

# Pages a second that are read again, at least.
FAULTS = 1.0

_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class _Mark:
    """How it stood: seconds, who lived, seconds that they worked, pages that they had to read."""

    at: float
    pids: frozenset[int]
    worked: float
    faults: int


class Stall:
    """Asked from time to time. `stuck` tells whether it has been so for `SECONDS`."""

    def __init__(self, group: Cgroup) -> None:
        self._group = group
        self._since: _Mark | None = None

    def stuck(self, timestamp: float) -> bool:
        """Look, at `timestamp` seconds of a clock that only goes on. A process that came or ended is work
        done."""
        pids = self._group.members()
        mark = _Mark(timestamp, pids, sum(map(_worked, pids)), self._group.major_faults())
        since = self._since
        if (
            since is None
            or since.pids != pids
            or mark.worked - since.worked > WORK * SECONDS
            or not any(_full(group) for group in _above(self._group))
        ):
            self._since = mark
            return False
        passed = timestamp - since.at
        return passed >= SECONDS and mark.faults - since.faults >= FAULTS * passed


def _above(group: Cgroup) -> list[Cgroup]:
    """It and those whose limits hold for it."""
    folders = [group.folder, *(folder for folder in group.folder.parents if folder.is_relative_to(MOUNT))]
    return [Cgroup(folder=folder, path="", version=group.version) for folder in folders]


def _full(group: Cgroup) -> bool:
    limit = group.most_allowed()
    if limit is None:
        return False
    bound = group.most_used()
    return (bound is None or bound >= FULL * limit) and group.used() >= FULL * limit


def _worked(pid: int) -> float:
    """Seconds in a program's own code, without what the kernel did for it (proc(5), utime)."""
    fields = stat_of(pid)
    return int(fields[11]) / _TICK if fields else 0.0
