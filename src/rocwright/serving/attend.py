"""Waits for a server in the foreground, and leaves nothing of it."""

from __future__ import annotations

from subprocess import Popen

from rocwright.home import Home
from rocwright.serving import ready, state, stop
from rocwright.serving.model import ServerState


def attend(home: Home, started: ServerState, process: Popen[bytes]) -> None:
    """Wait until a server ends; it is ended where this process is asked to end. Its folder is removed.

    One that was stopped or started again from elsewhere is left alone. Raises CheckError, or what its log
    says, where it ended by itself.
    """
    try:
        status = process.wait()
    except BaseException:
        if _is_same_server(home, started):
            stop.stop(home, started.name)
        process.wait()
        raise
    if not _is_same_server(home, started):
        return
    error = ready.died(started, state.log_of(home, started.name), "ended by itself", status)
    stop.stop(home, started.name)
    raise error


def _is_same_server(home: Home, started: ServerState) -> bool:
    """Whether the server of that name is the one that was started here, and nobody else is stopping it."""
    current = state.read(home, started.name)
    return current is not None and current.mark == started.mark and not current.ending
