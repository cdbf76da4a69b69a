"""One look for all who wait: for a log to grow, for the records to change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LOOK_SECONDS = 0.05
"""Between two looks at the logs that somebody waits for."""

RECORDS_LOOKS = 6
"""So many of them between two looks at the records."""


class Bells:
    """Wakes those who wait; looks only while anybody does. `changed` gives the counter of the records."""

    def __init__(self, changed: Callable[[], Awaitable[int]]) -> None:
        self._changed = changed
        self._hearing: dict[Path, set[asyncio.Event]] = {}
        self._task: asyncio.Task[None] | None = None
        self.counter = -1
        """The records' counter when they were last looked at."""

    @contextmanager
    def heard(self, path: Path) -> Iterator[asyncio.Event]:
        """An event that is set when the file there grows, and when the records change."""
        event = asyncio.Event()
        self._hearing.setdefault(path, set()).add(event)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._look())
        try:
            yield event
        finally:
            mine = self._hearing[path]
            mine.discard(event)
            if not mine:
                del self._hearing[path]

    async def _look(self) -> None:
        sizes: dict[Path, int] = {}
        looks = 0
        while self._hearing:
            for path in [*self._hearing]:
                # whoever has just come has looked by itself
                size, previous = size_of(path), sizes.get(path)
                sizes[path] = size
                if previous is not None and size != previous:
                    _ring(self._hearing[path])
            if looks % RECORDS_LOOKS == 0:
                counter = await self._changed()
                if counter != self.counter:
                    self.counter = counter
                    for events in [*self._hearing.values()]:
                        _ring(events)
            looks += 1
            await asyncio.sleep(LOOK_SECONDS)


def size_of(path: Path) -> int:
    """Bytes of a file, 0 where it is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _ring(events: set[asyncio.Event]) -> None:
    for event in events:
        event.set()
