"""Watches a running sandbox's memory: by its cgroup, or by adding up its processes where it has none."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from threading import Event, Thread

import psutil

from rocwright.sandbox.cgroup import Cgroup

_PERIOD = 0.1


class MemoryWatch:
    """Samples until left. `peak` is in bytes; `exhausted` tells that the limit was met.

    With a cgroup the kernel enforces the limit; without one, `on_excess` is called when `limit` is passed.
    """

    def __init__(
        self,
        group: Cgroup | None,
        *,
        limit: int | None,
        pids: Callable[[], list[int]],
        on_excess: Callable[[], None],
    ) -> None:
        self._group = group
        self._limit = limit
        self._pids = pids
        self._on_excess = on_excess
        self._event = group.watch() if group is not None and limit is not None else None
        self._stop = Event()
        self._thread = Thread(target=self._sample, daemon=True)
        self.peak: int | None = None
        self.exhausted = False

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._group is not None:
            self._note(self._group.most())
            self.exhausted = self.exhausted or self._group.oom_kills() > 0
        if self._event is not None:
            with contextlib.suppress(BlockingIOError):
                self.exhausted = os.eventfd_read(self._event) > 0
            os.close(self._event)

    def _sample(self) -> None:
        while not self._stop.wait(_PERIOD):
            used = self._group.used() if self._group is not None else total(self._pids(), self._limit)
            self._note(used)
            if self._group is None and self._limit is not None and used > self._limit:
                self.exhausted = True
                self._on_excess()
                return

    def _note(self, used: int) -> None:
        if used:
            self.peak = max(self.peak or 0, used)


def total(pids: list[int], limit: int | None) -> int:
    """Memory of some processes and all below them, in bytes.

    Shared pages are counted in each process, and only where that passes `limit` in proportion (slower).
    """
    found: dict[int, psutil.Process] = {}
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            top = psutil.Process(pid)
            found.update({each.pid: each for each in (top, *top.children(recursive=True))})
    used = sum(_resident(each) for each in found.values())
    if limit is not None and used > limit:
        used = sum(_proportional(each) for each in found.values())
    return used


def _resident(each: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(each.memory_info().rss)
    return 0


def _proportional(each: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(each.memory_full_info().pss)
    return 0
