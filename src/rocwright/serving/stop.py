"""Ends a server, all of it and nothing else, and removes what it left."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from rocbase.errors import InputError, SandboxError
from rocbase.processes.owner import Owner
from rocwright.home import Home
from rocwright.sandbox import lasting
from rocwright.serving import container, state
from rocwright.serving.model import ServerState

SECONDS = 10
"""How long a server has to end by itself."""


def stop(home: Home, name: str, seconds: int = SECONDS) -> bool:
    """End the server of that name and remove its folder; whether it still ran.

    Raises InputError where there is none, SandboxError where it does not end.
    """
    if state.prepared(home, name):
        state.forget(home, name)
        return False
    found = find(home, name)
    ran = state.runs(found)
    state.keep(home, found.model_copy(update={"ending": True}))
    end(found, seconds)
    state.forget(home, name)
    return ran


def find(home: Home, name: str) -> ServerState:
    """What is kept of a server. Raises InputError where there is none of that name."""
    found = state.read(home, name)
    if found is None:
        names = [one.name for one in state.servers(home)]
        raise InputError(
            f"there is no server {name}",
            cause=f"these were started: {', '.join(names)}"
            if names
            else "none was started, or all were stopped",
            next_step="rocwright ps shows them",
        )
    return found


def end(found: ServerState, seconds: int = SECONDS) -> None:
    """Ask it to end, and after so many seconds make it. Others that have its number are left alone."""
    if found.boot != state.boot_id():
        return
    if found.place != "host":
        container.end(found.place, found.mark, seconds)
    _ask(found)
    until = time.monotonic() + seconds
    while time.monotonic() < until and lasting.processes(found.mark):
        time.sleep(0.02)
    lasting.kill(found.mark)
    if lasting.processes(found.mark):
        raise SandboxError(
            f"{found.name} does not end",
            cause="its processes are held by the kernel, as by a GPU that does not answer",
            next_step="rocwright doctor shows what the driver says",
        )


def _ask(found: ServerState) -> None:
    """SIGTERM to the session that was started for it, if its first process is still that one."""
    if not found.pid or not Owner(pid=found.pid, start=found.start).alive():
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(found.pid, signal.SIGTERM)
