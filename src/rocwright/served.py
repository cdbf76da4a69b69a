"""An application served over HTTP from this machine, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from rocwright.errors import InputError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

GRACE = 3
"""Seconds that answers under way have to end."""


def serve(
    made: ASGIApp, host: str, port: int, told: Callable[[str], None], *, most_clients: int = 256
) -> None:
    """Serve; `told` is given the address once it listens. Further clients than `most_clients` are refused.

    Raises InputError where it cannot listen there.
    """
    import uvicorn

    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=most_clients)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {host} port {port}: {error}",
            cause="something else listens there, the address is not this machine's, or the port needs root",
            next_step="take another --port; 0 finds a free one",
        ) from error
    with listening:
        # each connection takes it over; without it a page waits for the client's acknowledgement of its head
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        name = f"[{host}]" if family == socket.AF_INET6 else host
        told(f"http://{name}:{listening.getsockname()[1]}")
        config = uvicorn.Config(
            made,
            log_config=None,
            log_level="critical",  # the application tells what goes wrong itself
            access_log=False,
            server_header=False,
            ws="none",
            limit_concurrency=most_clients,
            timeout_graceful_shutdown=GRACE,
        )
        # uvicorn ends in order and then hands the signal on: what the caller has begun must end too
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt:
            return
        finally:
            signal.signal(signal.SIGTERM, before)
