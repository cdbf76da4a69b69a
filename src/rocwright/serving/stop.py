"""Ends a server, all of it and nothing else, and removes what it left."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from rocbase.errors import InputError, SandboxError
from rocbase.processes.outlive import boot_id
from rocbase.processes.owner import Owner
from rocwright.home import Home
from rocwright.sandbox import lasting
from rocwright.serving import container, state
from rocwright.serving.model import ServerState

# How long a server has to end by itself.
SECONDS = 10


def stop(home: Home, name: str, seconds: int = SECONDS) -> bool:
    """End the server of that name and remove its folder; whether it still ran.

    Raises InputError where there is none, SandboxError where it does not end.
    """
    if state.prepared(home, name):
        state.forget(home, name)
        return False
    server = find(home, name)
    ran = state.runs(server)
    state.keep(home, server.model_copy(update={"ending": True}))
    end(server, seconds)
    state.forget(home, name)
    return ran


def find(home: Home, name: str) -> ServerState:
    """What is kept of a server. Raises InputError where there is none of that name."""
    server = state.read(home, name)
    if server is None:
        names = [entry.name for entry in state.servers(home)]
        raise InputError(
            f"there is no server {name}",
            cause=f"these were started: {', '.join(names)}"
            if names
            else "none was started, or all were stopped",
            next_step="rocwright ps shows them",
        )
    return server


def end(server: ServerState, seconds: int = SECONDS) -> None:
    """Ask it to end, and after so many seconds make it. Others that have its number are left alone."""
    if server.boot != boot_id():
        return
    if server.place != "host":
        container.end(server.place, server.mark, seconds)
    _ask(server)
    until = time.monotonic() + seconds
    while time.monotonic() < until and lasting.processes(server.mark):
        time.sleep(0.02)
    lasting.kill(server.mark)
    if lasting.processes(server.mark):
        raise SandboxError(
            f"{server.name} does not end",
            cause="its processes are held by the kernel, as by a GPU that does not answer",
            next_step="rocwright doctor shows what the driver says",
        )


def _ask(server: ServerState) -> None:
    """SIGTERM to the session that was started for it, if its first process is still that one."""
    if not server.pid or not Owner(pid=server.pid, start=server.start).alive():
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, signal.SIGTERM)
