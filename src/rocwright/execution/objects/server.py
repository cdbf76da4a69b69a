"""What answers ccache at the socket of a step: with objects of the step's own trust domain, and nothing else.

Whoever connects is the step's own program, and may be made to do harm. It can get and put objects of its
domain, within bounds for this step; whatever else it sends costs it its connection.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from rocwheel import units
from rocwright.execution.objects.resp import (
    END,
    MISS,
    NONE,
    OK,
    ONE,
    PREFIX,
    NotAdmittedError,
    ProtocolError,
    Reader,
    bulk,
    error,
    send,
)
from rocwright.store.objects import LARGEST, Taken, is_object_key

MOST_CONNECTIONS = 512
"""Each compiler that runs has one; who comes later waits."""

MOST_REQUESTS = 500_000
"""Of one step; the largest component compiles some 10,000 files, with four requests each."""

MOST_BYTES = 40 * 1024**3
"""What one step may get, and what it may put."""

WAITING = 256 * 1024 * 1024
"""Bytes that wait to be sent at most: compilers do not wait for a slow line."""

AT_ONCE = 8
"""Values that are received or answered at the same time, and sent to the bucket."""

LAST_SECONDS = 30.0
"""How long what still waits at the end of a step may take to be sent."""


class Objects(Protocol):
    """Where the objects of a domain are."""

    def get(self, key: str) -> Taken | None:
        """An object of that key."""
        ...

    def put(self, key: str, data: bytes, others: tuple[str, ...] = ()) -> bool:
        """Have an object of that key there; whether it is. `others` may have had a part in it."""
        ...


class ObjectServer:
    """Answers at a socket while a step runs.

    `on_taken` is called with whose objects are about to be handed out, before they are; `others` gives the
    ids of keys whose objects may be in what the step puts.
    """

    def __init__(
        self,
        objects: Objects,
        on_taken: Callable[[Taken], None],
        others: Callable[[], tuple[str, ...]],
        say: Callable[[str], None],
    ) -> None:
        self._objects, self._on_taken, self._others, self._say = objects, on_taken, others, say
        self.taken: Counter[str] = Counter()
        """How many objects were handed out, by the id of the key that signed them."""
        self.put = self.left = 0
        """How many were put, and how many were not because too many waited."""
        self._requests = self._got = self._sent = self._waits = 0
        self._puts = True
        self._mine: set[str] = set()
        self._told: set[str] = set()
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(AT_ONCE)
        self._free = threading.Semaphore(MOST_CONNECTIONS)
        self._clients: set[socket.socket] = set()
        self._queue: queue.SimpleQueue[tuple[str, bytes, tuple[str, ...]] | None] = queue.SimpleQueue()
        self._ended = False

    @contextlib.contextmanager
    def serving(self, path: Path) -> Iterator[None]:
        """Answer at a socket of that path, which is made, until the end; then send what still waits."""
        server = _bound(path)
        threads = [threading.Thread(target=self._send, daemon=True) for _ in range(AT_ONCE)]
        threads.append(threading.Thread(target=self._accept, args=(server,), daemon=True))
        for one in threads:
            one.start()
        try:
            yield
        finally:
            self._end(server, threads)
            path.unlink(missing_ok=True)

    def _end(self, server: socket.socket, threads: list[threading.Thread]) -> None:
        with self._lock:
            self._ended = True
            clients = list(self._clients)
        for each in (server, *clients):
            # wakes who waits for it
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        server.close()
        for _ in threads:
            self._queue.put(None)
        *senders, accepts = threads
        accepts.join(1)
        until = time.monotonic() + LAST_SECONDS
        for one in senders:
            one.join(max(0.0, until - time.monotonic()))
        if any(one.is_alive() for one in senders):
            # they end with what they send now
            self._puts = False
            self._tell("what was compiled last was not shared: the bucket is slower than the compiler")

    # who comes

    def _accept(self, server: socket.socket) -> None:
        while True:
            # who is turned away in the middle of a write gets a signal: it waits instead
            self._free.acquire()
            try:
                client, _ = server.accept()
            except OSError:
                return
            with self._lock:
                if self._ended:
                    client.close()
                    return
                self._clients.add(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        # what is wrong with one connection is no matter of another
        try:
            with contextlib.suppress(OSError), client:
                room = _Room(self)
                reader = Reader(client, room.admit)
                while self._answered(client, reader, room):
                    pass
        finally:
            with self._lock:
                self._clients.discard(client)
            self._free.release()

    def _answered(self, client: socket.socket, reader: Reader, room: _Room) -> bool:
        """Answer the next command; whether there may be one more."""
        try:
            words = reader.command()
            if words is None:
                return False
            with self._lock:
                self._requests += 1
            with self._slots:
                send(client, *self._answer(words, room))
        except NotAdmittedError as why:
            send(client, error(str(why)))
        except ProtocolError as why:
            send(client, error(str(why)))
            return False
        finally:
            room.give_back()
        return True

    def reserve(self, size: int) -> bool:
        """Whether there is room for an object of so many bytes; then it is taken."""
        if size > LARGEST:
            self._tell(f"an object of more than {units.size(LARGEST)} was not shared")
            return False
        if not (self._puts and self._may(self._sent)):
            return False
        with self._lock:
            if self._waits + size > WAITING:
                self.left += 1
                return False
            self._waits += size
            self._sent += size
        return True

    def release(self, size: int) -> None:
        """So many bytes do not wait any more."""
        with self._lock:
            self._waits -= size

    def _answer(self, words: list[bytes], room: _Room) -> tuple[bytes, ...]:
        name, key = words[0].upper(), _key(words[1]) if len(words) > 1 else ""
        if name == b"PING":
            return (b"+PONG\r\n",)
        if not key:
            return (error("that is no key of ccache"),)
        match (name, words[2:]):
            case (b"GET", []):
                return self._get(key)
            case (b"SET", [data]):
                self._mine.add(key)
                self._queue.put((key, data, self._others()))
                room.hand_on()
                return (OK,)
            case (b"EXISTS", []):
                # asked only before what the local cache has is sent again, which others may have compiled
                return (ONE,)
            case (b"DEL", []):
                return (NONE,)
        return (error("unknown command"),)

    def _get(self, key: str) -> tuple[bytes, ...]:
        # what the step itself has compiled is in its local cache, and must not look as if it had been there
        if key in self._mine or not self._may(self._got):
            return (MISS,)
        found = self._objects.get(key)
        if found is None:
            return (MISS,)
        self._on_taken(found)
        with self._lock:
            self._got += len(found.data)
            self.taken[found.keyid] += 1
        return bulk(found.data), found.data, END

    def _may(self, so_far: int) -> bool:
        within = self._requests <= MOST_REQUESTS and so_far <= MOST_BYTES
        if not within:
            self._tell("the step asked for more than one step may, and has no part in it any more")
        return within

    # what goes to the bucket

    def _send(self) -> None:
        while (one := self._queue.get()) is not None:
            key, data, others = one
            if self._puts:
                done = self._objects.put(key, data, others)
                with self._lock:
                    self.put += done
                    self._puts = self._puts and done
            self.release(len(data))

    def _tell(self, text: str) -> None:
        with self._lock:
            told = text in self._told
            self._told.add(text)
        if not told:
            self._say(f"shared compiler cache: {text}")


class _Room:
    """What one connection has reserved for the value that it brings."""

    def __init__(self, server: ObjectServer) -> None:
        self._server, self._size = server, 0

    def admit(self, size: int) -> bool:
        if not self._server.reserve(size):
            return False
        self._size += size
        return True

    def hand_on(self) -> None:
        """It is another's to give back."""
        self._size = 0

    def give_back(self) -> None:
        self._server.release(self._size)
        self._size = 0


def _key(word: bytes) -> str:
    """The name of an object; "" for any other word."""
    key = word.removeprefix(PREFIX).decode("ascii", "replace")
    return key if word.startswith(PREFIX) and is_object_key(key) else ""


def _bound(path: Path) -> socket.socket:
    """A socket at a path of any length: its own name has at most 107 bytes."""
    server = socket.socket(socket.AF_UNIX)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        server.bind(f"/proc/self/fd/{folder}/{path.name}")
    except OSError:
        server.close()
        raise
    finally:
        os.close(folder)
    # the step is another user
    path.chmod(0o666)
    server.listen(128)
    return server
