"""Process numbers that are another process's by now."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def taken_over() -> Iterator[tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]]:
    """A process whose end was noted, and one that lives and has its number, of a session of its own."""
    ended = subprocess.Popen(["true"], start_new_session=True)
    ended.wait()
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as living:
        ended.pid = living.pid  # as the kernel hands numbers out again
        try:
            yield ended, living
        finally:
            living.kill()


def lives(process: subprocess.Popen[bytes]) -> bool:
    """Whether it still runs some moments later: a signal takes effect by then."""
    try:
        process.wait(0.3)
    except subprocess.TimeoutExpired:
        return True
    return False
