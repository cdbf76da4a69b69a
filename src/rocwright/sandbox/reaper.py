"""A companion process that outlives its owner and removes what the owner left; one for all its sandboxes."""

from __future__ import annotations

import os
import select
import sys
from subprocess import Popen
from threading import Lock

from rocwright import process
from rocwright.sandbox import state
from rocwright.untrusted import sweep_temporary

_lock = Lock()
_started: dict[int, Popen[bytes]] = {}


def ensure() -> None:
    """Start this process's reaper unless it runs; it also removes what earlier owners left."""
    with _lock:
        owner = state.this_process()
        running = _started.get(owner.pid)
        if running is None or running.poll() is not None:
            argv = (sys.executable, "-m", __name__, str(owner.pid), str(owner.start))
            _started[owner.pid] = process.detach(argv)


def wait_for(owner: state.Owner) -> None:
    """Return once a process has ended."""
    try:
        descriptor = os.pidfd_open(owner.pid)
    except OSError:
        return
    try:
        if owner.alive():
            select.select([descriptor], [], [])
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    state.sweep()
    sweep_temporary()
    wait_for(state.Owner(pid=int(sys.argv[1]), start=int(sys.argv[2])))
    state.sweep()
    sweep_temporary()
