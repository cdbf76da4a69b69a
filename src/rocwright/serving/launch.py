"""A server that is ready to be started, and its start."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from subprocess import Popen

from rocbase.files.atomic import write_atomic
from rocbase.processes.owner import start_time
from rocwright import sandbox
from rocwright.catalog.server import Server
from rocwright.home import Home
from rocwright.sandbox.model import SandboxJob
from rocwright.serving import state
from rocwright.serving.logs import start_logged
from rocwright.serving.model import ServerState
from rocwright.serving.sound import tone


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A server that is ready to be started: its command, the environment of that, and what is kept of it.

    `job` is what its sandbox runs, where it runs in one.
    """

    state: ServerState
    argv: tuple[str, ...]
    env: Mapping[str, str]
    server: Server
    key: str = ""
    job: SandboxJob | None = None


def new_mark(name: str) -> str:
    """A word that no other server's processes carry."""
    return f"rocwright-server-{name}-{secrets.token_hex(4)}"


def boxed(
    job: SandboxJob, home: Home, name: str, mark: str, *, stays: bool, dry: bool = False
) -> sandbox.Ready:
    """The command that runs a server's job in its sandbox, whose settings are laid out in its folder; of a
    `dry` run the command alone."""
    if dry:
        return sandbox.describe(job, mark)
    box = state.box_of(home, name)
    box.mkdir()
    return sandbox.make_ready(job, box, mark, stays=stays)


def start(launch: Launch, home: Home) -> tuple[ServerState, Popen[bytes]]:
    """Start it, and keep what tells its processes from all others: before and after."""
    state.keep(home, launch.state)
    if launch.server.request is not None and launch.server.request.sound:
        write_atomic(state.sound_of(home, launch.state.name), tone())
    running = start_logged(home, launch.state.name, launch.argv, launch.env)
    started = launch.state.model_copy(update={"pid": running.pid, "start": start_time(running.pid) or 0})
    state.keep(home, started)
    return started, running


def living(running: Popen[bytes]) -> Callable[[], bool]:
    """Whether the process that was just started is still there."""
    return lambda: running.poll() is None
