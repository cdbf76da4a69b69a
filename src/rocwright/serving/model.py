"""A server that was started, as it is kept on disk, and how it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from rocbase.model import Frozen

# Where a server runs: in bubblewrap with its base from the store, or in a container of its image.
Place = Literal["host", "podman", "docker"]

LOOPBACK = "127.0.0.1"

# Hosts that mean every address of this machine.
ANY_ADDRESS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - the user names them

# In the folder of a server: its key, and the sound that one that hears is asked about first.
KEY_FILE, SOUND = "key", "sound.wav"

# What a server may be called: its folder has that name, and is removed with it.
NAME = r"[a-z0-9][a-z0-9._-]{0,62}"

Name = Annotated[str, Field(pattern=f"^{NAME}$")]


class ServerState(Frozen):
    """A server that was started: what, where, and how its processes are known.

    `mark` is the word that its processes carry, and its container's name. `pid` and `start` (clock ticks
    since boot `boot`) are those of the process that was started; 0 until it was. `begun` is UTC, ISO 8601.
    `key` says that it asks for a key; `addresses` are what to open, by name; `keeps` is the folder of its
    users that it writes to, where it has one. `ending` says that somebody is stopping it, so that its end is
    no failure.
    """

    name: Name
    stack: str
    component: str
    version: str
    gpu: tuple[str, ...]
    base: str
    on: str
    model: str
    place: Place
    host: str
    port: int
    key: bool = False
    health: str
    addresses: dict[str, str] = {}
    keeps: str = ""
    mark: str
    boot: str
    pid: int = 0
    start: int = 0
    begun: str
    command: tuple[str, ...] = ()
    ending: bool = False

    @property
    def url(self) -> str:
        """Its address for who is on this machine."""
        return address(self.host, self.port)


def address(host: str, port: int) -> str:
    """The address of a port as a browser on this machine takes it."""
    hostname = LOOPBACK if host in ANY_ADDRESS else host
    return f"http://[{hostname}]:{port}" if ":" in hostname else f"http://{hostname}:{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a user may say of a run beside the stack and the GPU; `port` 0 is the product's own.

    `options` and `variables` are the user's own, for the server's program.
    """

    model: str = ""
    name: str = ""
    host: str = LOOPBACK
    port: int = 0
    place: Place = "host"
    on: str = ""
    key: bool = True
    options: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
