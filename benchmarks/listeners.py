"""Many clients of one live log, in one thread, which note how late each line is."""

from __future__ import annotations

import json
import selectors
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from benchmarks.clients import Place


@dataclass(slots=True)
class Listener:
    """A client: its events as they came, with the time when each was whole."""

    connection: socket.socket
    events: list[tuple[float, bytes]] = field(default_factory=list)
    begun: bytes = b""

    def hear(self) -> bool:
        """Take what is there; false where the server has closed."""
        more = self.connection.recv(1 << 18)
        now = time.time()
        *whole, self.begun = (self.begun + more).split(b"\n\n")
        self.events += [(now, one) for one in whole]
        return bool(more)

    def late(self) -> list[float]:
        """Seconds from when each line was written, which it begins with, until it was here."""
        found = []
        for at, event in self.events:
            data = event.partition(b"data: [")[2]
            if data:
                found += [
                    at - float(one["text"].split()[0]) for one in json.loads(b"[" + data.split(b"\n")[0])
                ]
        return found


@contextmanager
def listeners(place: Place, request: bytes, count: int) -> Iterator[Sequence[Listener]]:
    """So many clients who hear until the end."""
    every = [Listener(asking(place, request)) for _ in range(count)]
    ended = threading.Event()
    thread = threading.Thread(target=_hear, args=(every, ended), daemon=True)
    thread.start()
    try:
        yield every
    finally:
        ended.set()
        thread.join(10)
        for one in every:
            one.connection.close()


def asking(place: Place, request: bytes) -> socket.socket:
    """A connection that has asked."""
    connection = socket.create_connection(place)
    connection.sendall(request)
    return connection


def _hear(every: Sequence[Listener], ended: threading.Event) -> None:
    with selectors.DefaultSelector() as waiting:
        for one in every:
            waiting.register(one.connection, selectors.EVENT_READ, one)
        while not ended.is_set():
            for key, _ in waiting.select(0.1):
                if not key.data.hear():
                    waiting.unregister(key.fileobj)
