"""A download in rocwright's own progress, in the form that huggingface_hub reports in (tqdm's)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rocbase.units import duration, size
from rocwright.execution.progress import Progress, RunningStep

EVERY = 0.25
"""Seconds between two looks at how far it is."""


@contextmanager
def bar_for(progress: Progress, name: str) -> Iterator[type[Any]]:
    """A class of bars that tell `progress` of one download."""
    running = RunningStep(name, jobs=1)
    started = time.monotonic()
    progress.started(running)
    received = [0]

    class Bar:
        def __init__(self, *_: object, total: int | None = None, initial: int = 0, **__: object) -> None:
            self.total, self.n, self._told = total, initial, 0.0

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *_: object) -> None: ...

        def update(self, count: float | None = 1) -> None:
            self.n += int(count or 0)
            received[0] += int(count or 0)
            timestamp = time.monotonic()
            if self.total and timestamp - self._told >= EVERY:
                self._told = timestamp
                share = min(100, 100 * self.n // self.total)
                progress.line(running, f"[{share:3d}%] {size(self.n)} of {size(self.total)}")

        def __getattr__(self, _: str) -> Any:
            return lambda *_, **__: None

    ended = "broken off"
    try:
        yield Bar
        seconds = time.monotonic() - started
        ended = f"{size(received[0])} in {duration(seconds)}"
    finally:
        progress.ended(running, ended)
