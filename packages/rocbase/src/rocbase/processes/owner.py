"""Which process something belongs to: a number alone may be another process's by now."""

from __future__ import annotations

import os
from dataclasses import dataclass

from rocbase.processes.outlive import start_time as start_time


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
