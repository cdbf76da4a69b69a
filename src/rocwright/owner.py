"""Which process something belongs to: a number alone may be another process's by now."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A process, told from a later one with the same number by its start time in clock ticks."""

    pid: int
    start: int

    def alive(self) -> bool:
        return start_time(self.pid) == self.start


def this_process() -> Owner:
    """The owner of what is made now."""
    pid = os.getpid()
    return Owner(pid=pid, start=start_time(pid) or 0)


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None for one that is gone or awaits its parent."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in {"Z", "X"} else int(fields[19])
