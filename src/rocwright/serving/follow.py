"""What is added to a log, as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

_PAUSE = 0.2
_PIECE = 64 * 1024


def follow(path: Path, on: Callable[[], bool]) -> Iterator[str]:
    """The text of a log and what is added, until `on` says that no more comes."""
    with path.open("r", encoding="utf-8", errors="replace") as file:
        while True:
            more = on()
            while text := file.read(_PIECE):
                yield text
            if not more:
                return
            time.sleep(_PAUSE)
