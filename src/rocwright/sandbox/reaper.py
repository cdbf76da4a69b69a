"""A companion process that outlives its owner and removes what the owner left; one for all its sandboxes.

It only waits (rocwright/outlive.py). What sweeps is this module as a program: it is loaded, which takes ten
times as long, where something was left.
"""

from __future__ import annotations

import sys
from subprocess import Popen
from threading import Lock

from rocbase.folders.temporary import sweep_temporary, temporary_places
from rocbase.processes import outlive
from rocbase.processes import run as process
from rocwright.sandbox import state

_lock = Lock()
_started: dict[int, Popen[bytes]] = {}


def ensure() -> None:
    """Start this process's reaper unless it runs; it also removes what earlier owners left."""
    with _lock:
        owner = state.this_process()
        running = _started.get(owner.pid)
        if running is None or running.poll() is not None:
            _started[owner.pid] = process.detach(companion(owner))


def companion(owner: state.Owner) -> tuple[str, ...]:
    """The command that waits for `owner`: without site packages, it loads nothing of rocwright's."""
    places = (str(state.home()), *map(str, temporary_places()))
    alone = (sys.executable, "-I", "-S", outlive.__file__)
    return (*alone, str(owner.pid), str(owner.start), "rocwright.sandbox.reaper", *places)


if __name__ == "__main__":
    state.sweep()
    sweep_temporary()
