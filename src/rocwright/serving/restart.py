"""A server again, with the command that it was started with."""

from __future__ import annotations

from rocbase.errors import InputError
from rocbase.processes.outlive import boot_id
from rocwright.catalog.load import the_catalog
from rocwright.home import Home
from rocwright.records.model import now
from rocwright.sandbox import lasting
from rocwright.sandbox.engine import host_environment
from rocwright.serving import state, stop
from rocwright.serving.launch import Launch, new_mark
from rocwright.serving.notebook import server_named


def again(home: Home, name: str) -> Launch:
    """End a server, and make it ready to be started with the same command. Raises InputError."""
    server_state = stop.find(home, name)
    server = server_named(server_state.component) or the_catalog().component(server_state.component).server
    if server is None:
        raise InputError(
            f"{name} cannot be started again",
            cause=f"the catalog says no more how {server_state.component} is run",
            next_step=f"rocwright stop {name}",
        )
    state.keep(home, server_state.model_copy(update={"ending": True}))
    stop.end(server_state)
    mark = new_mark(name)
    command = tuple(
        mark if word == server_state.mark else word for word in lasting.staying(server_state.command)
    )
    fresh = server_state.model_copy(
        update={
            "mark": mark,
            "command": command,
            "ending": False,
            "pid": 0,
            "start": 0,
            "boot": boot_id(),
            "begun": now(),
        }
    )
    key = state.key_of(home, name).read_text().strip() if server_state.key else ""
    return Launch(state=fresh, argv=command, env=host_environment(mark), server=server, key=key)
