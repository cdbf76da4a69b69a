"""An application served over HTTP from this machine, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import resource
import signal
import socket
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from rocbase.errors import InputError

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

# Seconds that answers under way have to end.
GRACE = 3

# Files that a server itself has open and those of clients that are turned away, and those of one client: a
# socket, and what it downloads.
OWN_FILES, FILES_EACH = 512, 2


# Bytes of a client that the system keeps until they are read, and so the most of one read, twice as many.
RECEIVED = 32 * 1024


def serve(
    application: ASGIApp,
    host: str,
    port: int,
    announce: Callable[[str], None],
    *,
    most_clients: int = 256,
    names: Collection[str] = (),
) -> None:
    """Serve; `announce` is given the address once it listens. `names`: the host names that it answers to
    beside addresses of the loopback; empty: any.

    Further clients than `most_clients`, or than this process may open files for, are told to come again.
    Raises InputError where it cannot listen there, or may hardly open files.
    """
    import uvicorn

    limit = room_for(most_clients)
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=limit)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {host} port {port}: {error}",
            cause="another program listens there, the address does not belong to this machine, or "
            "the port needs root",
            next_step="use another --port; 0 finds a free one",
        ) from error
    with listening:
        # each connection takes it over; without it a page waits for the client's acknowledgement of its head
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED)
        name = f"[{host}]" if family == socket.AF_INET6 else host
        announce(f"http://{name}:{listening.getsockname()[1]}")
        # uvicorn ends in order and then hands the signal on: what the caller has begun must end too
        previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            uvicorn.Server(settings(application, limit, names)).run(sockets=[listening])
        except KeyboardInterrupt:
            return
        finally:
            signal.signal(signal.SIGTERM, previous)


def settings(application: ASGIApp, most_clients: int, names: Collection[str] = ()) -> uvicorn.Config:
    """How uvicorn serves it: with bounds for its clients, and without a word."""
    import uvicorn

    from rocwright.web.connection import MOST_HEAD, Connection, ConnectionBudget
    from rocwright.web.limits import RequestLimits

    config = uvicorn.Config(
        RequestLimits(application, names),
        http="h11",
        h11_max_incomplete_event_size=MOST_HEAD,
        log_config=None,
        log_level="critical",  # the application tells what goes wrong itself
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=GRACE,
    )
    config.load()
    bounds = {"room": ConnectionBudget(most_clients), "speaks": config.http_protocol_class}
    config.http_protocol_class = type("Bounded", (Connection,), bounds)
    return config


def room_for(clients: int) -> int:
    """How many clients this process may open files for, so many at most; its limit is raised where it can be.

    Raises InputError where that is none.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    required = OWN_FILES + FILES_EACH * clients
    if soft != resource.RLIM_INFINITY and soft < required:
        soft = required if hard == resource.RLIM_INFINITY else min(required, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return clients
    room = min(clients, (soft - OWN_FILES) // FILES_EACH)
    if room < 1:
        raise InputError(
            f"this process may open only {soft} files, and a server needs more than {OWN_FILES}",
            cause="the limit of open files (RLIMIT_NOFILE) is too low",
            next_step="raise the limit: ulimit -Hn, or LimitNOFILE= of its unit",
        )
    return room
