"""How much memory there is for a build: of the machine, of every cgroup above, and of what the user
allows."""

from __future__ import annotations

from dataclasses import dataclass

import psutil

from rocwright.sandbox.cgroup import Cgroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Memory in bytes, as the tightest of all bounds has it.

    `total` is what the machine, or the tightest cgroup above this process, has in all. `available` is what
    can still be taken before that, or `limit`, is met. `used` is what the build's own processes have
    (anonymous and shared). `limit` is the user's bound for the whole build, None for none. `pressure` is
    the share of the last ten seconds in which some process waited for memory (PSI "some avg10", 0 to 1),
    None where the kernel does not tell.
    """

    total: int
    used: int
    available: int
    limit: int | None = None
    pressure: float | None = None


def read_room(limit: int | None, group: Cgroup | None) -> Room:
    """Look now. `group` is the cgroup of the whole build, None where there is none. Never raises."""
    memory = psutil.virtual_memory()
    used = group.used() if group is not None else 0
    available = memory.available if limit is None else min(memory.available, max(0, limit - used))
    return Room(total=memory.total, used=used, available=available, limit=limit)
