"""Two logs of a step in their files: what the one that failed has and the good one has not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

from rocwright.diagnosis.novel import Novelty, novelty
from rocwright.diagnosis.read_log import is_compressed, open_log, pieces

# Bytes at the end of each log that are looked at.
MOST_READ = 64 * 1024 * 1024


def compare(failed: Path, good: Path) -> Novelty:
    """What is new in a log, by a good one of the same step. Raises InputError where one cannot be read."""
    with open_log(failed) as bad, open_log(good) as well:
        lines, size = _to_the_end(bad)
        _to_the_end(well)
        return novelty(pieces(bad), pieces(well), skipped=lines, left_out=size)


def _to_the_end(file: IO[bytes]) -> tuple[int, int]:
    """Pass over all but the last bytes of a log, to the begin of a line: the lines and bytes before that.

    A compressed one is read whole: where its end begins is not known before.
    """
    if not file.seekable() or _is_compressed(file):
        return 0, 0
    size = file.seek(0, 2)
    file.seek(max(0, size - MOST_READ))
    if size > MOST_READ:
        file.readline(MOST_READ)
    offset = file.tell()
    file.seek(0)
    lines = sum(block.count(b"\n") for block in _blocks(file, offset))
    file.seek(offset)
    return lines, offset


def _is_compressed(file: IO[bytes]) -> bool:
    first = file.read(8)
    file.seek(0)
    return is_compressed(first)


def _blocks(file: IO[bytes], size: int) -> Iterator[bytes]:
    while size > 0 and (block := file.read(min(size, 1024 * 1024))):
        size -= len(block)
        yield block
