"""What waits beside a process for its end, and starts what sweeps where something is left.

It is run by its path (sandbox/reaper.py), one beside each build and each step: so it needs nothing but the
smallest parts of the standard library, and what they share with other programs is here.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys

SANDBOX = "rocwright"
"""How the name of a sandbox's folder begins: then come its owner's number, its start, and a count."""

PREFIX, SUFFIX = "rocwright-", ".tmp"
"""How the name of a temporary folder begins and ends."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a temporary folder is opened for its lock."""


def stat_of(pid: int) -> list[str]:
    """Return the fields of a process, from its state on (proc(5), stat); none if it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None for one that is gone or awaits its parent."""
    fields = stat_of(pid)
    return int(fields[19]) if fields and fields[0] not in {"Z", "X"} else None


def boot_id() -> str:
    """Return a word that is another after each start of the machine: process ids say nothing beyond it."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def owner_of(name: str) -> tuple[int, int] | None:
    """The number and the start of the process that a sandbox's name tells."""
    words = name.split("-")
    if len(words) == 4 and words[0] == SANDBOX and all(word.isdigit() for word in words[1:]):
        return int(words[1]), int(words[2])
    return None


def left_behind(runtime: str, places: list[str]) -> bool:
    """Whether a sandbox in the folder `runtime` has an owner that is gone, or a temporary folder of ours in
    one of `places` has nobody who holds it."""
    owners = [owner for name in _names(runtime) if (owner := owner_of(name))]
    if any(start_time(pid) != start for pid, start in owners):
        return True
    entries = [(place, name) for place in places for name in _names(place)]
    return any(
        _free(f"{place}/{name}")
        for place, name in entries
        if name.startswith(PREFIX) and name.endswith(SUFFIX)
    )


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _free(folder: str) -> bool:
    try:
        descriptor = os.open(folder, FOLDER)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(descriptor).st_uid == os.geteuid()
    except OSError:
        return False
    finally:
        os.close(descriptor)


def wait_for(pid: int, start: int) -> None:
    """Return once that process has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if start_time(pid) == start:
            select.select([descriptor], [], [])
    finally:
        os.close(descriptor)


def main(pid: str, start: str, sweeper: str, runtime: str, *places: str) -> None:
    """Sweep what earlier owners left, wait for this one, and sweep what it left."""
    sweep = [sys.executable, "-P", "-m", sweeper]  # as processes/python.py does
    if left_behind(runtime, [*places]):
        os.waitpid(os.posix_spawn(sys.executable, sweep, os.environ), 0)
    wait_for(int(pid), int(start))
    if left_behind(runtime, [*places]):
        os.execv(sys.executable, sweep)


if __name__ == "__main__":
    main(*sys.argv[1:])
