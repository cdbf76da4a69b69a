"""What is added to a log, as it comes."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

_PAUSE = 0.2
_PIECE = 64 * 1024


def follow(path: Path, is_running: Callable[[], bool]) -> Iterator[str]:
    """The text of a log and what is added, until `is_running` says that no more comes; where another file
    takes its place, as that of a log that has grown too long, what is in that."""
    file = _opened(path)
    try:
        while True:
            running = is_running()
            # what takes its place is looked for first: nothing is added to the old one any more then
            newer = _newer(path, file)
            # a step's log that has grown too long is cut in its middle
            if os.fstat(file.fileno()).st_size < os.lseek(file.fileno(), 0, os.SEEK_CUR):
                file.seek(0, os.SEEK_END)
            while text := file.read(_PIECE):
                yield text
            if newer is not None:
                file.close()
                file = newer
                continue
            if not running:
                return
            time.sleep(_PAUSE)
    finally:
        file.close()


def _opened(path: Path) -> TextIO:
    return path.open("r", encoding="utf-8", errors="replace")


def _newer(path: Path, file: TextIO) -> TextIO | None:
    """The file that has the name now, where it is another one than `file`."""
    with contextlib.suppress(OSError):
        newer = _opened(path)
        if not os.path.samestat(os.fstat(newer.fileno()), os.fstat(file.fileno())):
            return newer
        newer.close()
    return None
