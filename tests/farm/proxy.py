"""A network that can be made bad: a proxy of TCP in front of a server."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

Mood = Literal["well", "cut", "slow", "failing", "lost"]
ERROR = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass
class Proxy:
    """Hands on what comes: as it is; not at all (`cut`: connections end, and none is taken); each part half a
    second later (`slow`); it answers each request with the error 500 (`failing`); or it resets the connection
    in the place of the first answer, and hands on all that comes later (`lost`)."""

    upstream: int
    mood: Mood = "well"
    server: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.getsockname()[1]}"

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _is_cut(self) -> bool:
        return self.mood == "cut"

    def _carry(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            if self._is_cut():
                return
            with socket.create_connection(("127.0.0.1", self.upstream)) as server:
                while True:
                    ready, _, _ = select.select([client, server], [], [], 0.1)
                    if self._is_cut():
                        return
                    for one in ready:
                        data = one.recv(65536)
                        if not data:
                            return
                        if self.mood == "failing" and one is client:
                            client.sendall(ERROR)
                            return
                        if self.mood == "lost" and one is server:
                            self.mood = "well"
                            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                            return
                        if self.mood == "slow":
                            time.sleep(0.5)
                        (server if one is client else client).sendall(data)


@contextmanager
def proxied(upstream: int) -> Iterator[Proxy]:
    """A proxy of a port of this machine, for as long as this lasts."""
    proxy = Proxy(upstream)
    threading.Thread(target=proxy.serve, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.server.close()
