"""The server: listening, and what is said when it begins."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable

from starlette.types import ASGIApp

from rocwright.errors import InputError

MOST_CLIENTS = 2048


def run(made: ASGIApp, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or SIGTERM; `say` is told the address.

    Raises InputError where it cannot listen there.
    """
    import uvicorn

    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=MOST_CLIENTS)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {host} port {port}: {error}",
            cause="something else listens there, the address is not this machine's, or the port needs root",
            next_step="take another --port; 0 finds a free one",
        ) from error
    with listening:
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        name = f"[{host}]" if family == socket.AF_INET6 else host
        say(f"http://{name}:{listening.getsockname()[1]}")
        config = uvicorn.Config(
            made,
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            ws="none",
            limit_concurrency=MOST_CLIENTS,
            timeout_graceful_shutdown=2,
        )
        # uvicorn ends in order and then hands the signal on: what the caller has begun must end too
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt:
            return
        finally:
            signal.signal(signal.SIGTERM, before)
