"""Watches a running sandbox: its memory by its cgroup, or by adding up its processes where it has none; and
whether it wanted too many processes."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from rocwright.sandbox.cgroup import Cgroup
from rocwright.sandbox.stall import Stall

if TYPE_CHECKING:
    import psutil

VMSTAT = Path("/proc/vmstat")
_PERIOD, _LONGEST = 0.1, 0.5
_STALL_PERIOD = 1.0


class MemoryWatch:
    """Samples until left. `peak` is in bytes; `exhausted` tells that a process was ended for memory.

    With a cgroup the kernel enforces the limit and counts whom it killed; without one, `on_excess` is called
    when `limit` is passed; with one, where it is `stalled` at its limit (sandbox/stall.py). `elsewhere` tells
    that the kernel killed some process of the machine meanwhile, whosever it was: a hint, and no more. Where
    `crowded` says that a process was refused to it, that is an excess too.
    """

    def __init__(
        self,
        group: Cgroup | None,
        *,
        limit: int | None,
        pids: Callable[[], list[int]],
        crowded: Callable[[], bool] = lambda: False,
        on_excess: Callable[[], None],
    ) -> None:
        self._group = group
        self._limit = limit
        self._pids = pids
        self._is_crowded = crowded
        self._on_excess = on_excess
        self._event = group.watch() if group is not None and limit is not None else None
        self._before = machine_kills()
        self._stop = Event()
        self._thread = Thread(target=self._sample, daemon=True)
        self.peak: int | None = None
        self.exhausted = False
        self.stalled = False
        self.elsewhere = False
        self.crowded = False

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.crowded = self.crowded or self._is_crowded()
        current = machine_kills()
        self.elsewhere = None not in (self._before, current) and current != self._before
        if self._group is not None:
            self._note(self._group.most())
            self._count(self._group)
            # the event comes for a lack above too, where it need not have been this one that was killed
            if self._event is not None and _fired(self._event) and self._group.met_limit():
                self.exhausted = True
        if self._event is not None:
            os.close(self._event)

    def _sample(self) -> None:
        stall = Stall(self._group) if self._group is not None else None
        started, looked = time.monotonic(), 0.0
        while not self._stop.wait(self._period(time.monotonic() - started)):
            clock = time.monotonic()
            if stall is not None and clock - looked >= _STALL_PERIOD:
                looked = clock
                if stall.stuck(clock):
                    self.exhausted = self.stalled = True
                    self._on_excess()
                    return
            if self._is_crowded():
                self.crowded = True
                self._on_excess()
                return
            used = self._group.used() if self._group is not None else total(self._pids(), self._limit)
            self._note(used)
            if self._group is not None:
                # an engine's cgroup below this one goes, with its count, when the engine is done
                self._count(self._group)
            if self._group is None and self._limit is not None and used > self._limit:
                self.exhausted = True
                self._on_excess()
                return

    def _period(self, seconds: float) -> float:
        """Seconds to the next sample of a job that ran so long. Where the kernel keeps the limit, and a peak
        of its own, a long job is looked at less often."""
        return _PERIOD if self._group is None else period(seconds)

    def _count(self, group: Cgroup) -> None:
        self.exhausted = self.exhausted or group.oom_kills() > 0

    def _note(self, used: int) -> None:
        if used:
            self.peak = max(self.peak or 0, used)


def period(seconds: float) -> float:
    """A twentieth of the time that a job ran, at least 0.1 and at most 0.5 seconds."""
    return min(max(_PERIOD, seconds / 20), _LONGEST)


def machine_kills() -> int | None:
    """Processes that the kernel has killed for memory on this machine since it started, by any limit.

    None where the kernel does not say (before 4.13). Source: Linux, mm/oom_kill.c, the event OOM_KILL.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        words = VMSTAT.read_text().split()
        return int(words[words.index("oom_kill") + 1])
    return None


def _fired(event: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        return os.eventfd_read(event) > 0
    return False


def total(pids: list[int], limit: int | None) -> int:
    """Memory of some processes and all below them, in bytes.

    Shared pages are counted in each process, and only where that passes `limit` in proportion (slower).
    """
    # loaded only where there is no cgroup
    import psutil

    processes: dict[int, psutil.Process] = {}
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            top = psutil.Process(pid)
            processes.update({process.pid: process for process in (top, *top.children(recursive=True))})
    used = sum(_resident(process) for process in processes.values())
    if limit is not None and used > limit:
        used = sum(_proportional(process) for process in processes.values())
    return used


def _resident(process: psutil.Process) -> int:
    from psutil import Error

    with contextlib.suppress(Error):
        return int(process.memory_info().rss)
    return 0


def _proportional(process: psutil.Process) -> int:
    from psutil import Error

    with contextlib.suppress(Error):
        return int(process.memory_full_info().pss)
    return 0
