"""May a port be listened on? Asked before anything is started."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import socket
from collections.abc import Callable, Iterable

from rocbase.errors import InputError
from rocwright.serving.model import ServerState

# An address that no machine has (RFC 5737), and the port discard.
_OUTSIDE = ("192.0.2.1", 9)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def lan_address() -> str:
    """Return the address by which others in the network reach this machine; "" if it has no route to any."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(_OUTSIDE)  # of a datagram socket: it chooses the route, and sends nothing
        return str(probe.getsockname()[0])
    return ""


def is_free(host: str, port: int) -> bool:
    """Whether the port can be listened on."""
    return _fault(host, port) is None


def check_free(host: str, port: int, running: Iterable[ServerState]) -> None:
    """Raises InputError where the port cannot be listened on, with who has it and one that is free."""
    fault = _fault(host, port)
    if fault is None:
        return
    if fault.errno == errno.EADDRINUSE:
        mine = next((server.name for server in running if server.port == port), "")
        free = next((candidate for candidate in _near(port + 1) if _fault(host, candidate) is None), 0)
        raise InputError(
            f"port {port} is in use",
            cause=f"{mine} listens on it" if mine else "another program listens on it",
            next_step=f"--port {free}" + (f", or rocwright stop {mine}" if mine else ""),
        )
    raise InputError(
        f"nothing can listen on {host}, port {port}",
        cause=fault.strerror or str(fault),
        next_step="name an address of this machine with --host, and a port above 1023 with --port",
    )


def free_port(host: str, port: int, running: Iterable[ServerState], say: Callable[[str], None]) -> int:
    """The port, or the next free one where it is in use, which is said. Raises InputError as `check_free`."""
    free = next((candidate for candidate in _near(port) if _fault(host, candidate) is None), port)
    check_free(host, free, running)
    if free != port:
        say(f"port {port} is in use: {free} is taken instead")
    return free


def _near(port: int) -> range:
    return range(port, min(port + 100, 65536))


def _fault(host: str, port: int) -> OSError | None:
    try:
        family, kind, _, _, sockaddr = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(sockaddr)
    except OSError as error:
        return error
    return None
