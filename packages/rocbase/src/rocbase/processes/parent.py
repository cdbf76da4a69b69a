"""A process that ends with the one that started it, however that one ends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from types import FrameType

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Be killed when the process that started this one ends."""
    _when_gone(os.getppid(), signal.SIGKILL)


def stop_with(parent: int) -> None:
    """Stop in order, as with Ctrl-C, when the process with that number ends, which started this one; and when
    it asks for it, even where the shell that began it all lets background jobs ignore Ctrl-C."""

    def stop(number: int, frame: FrameType | None) -> None:
        # each thread of the parent that ends may send it, and it must not break off what the first began
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if number == signal.SIGHUP or os.getppid() != parent:
            # nobody reads any more what this one says on its way out
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
        raise KeyboardInterrupt

    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, stop)
    # a signal of its own: it comes before the number of the parent changes
    _when_gone(parent, signal.SIGHUP)


def _when_gone(parent: int, number: signal.Signals) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, number)
    # it may have ended before
    if os.getppid() != parent:
        os.kill(os.getpid(), number)
