"""Clients of a server on this machine, with nothing between them and the socket."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from benchmarks.measure import BenchError
from benchmarks.place import BIN

Place = tuple[str, int]

TOKEN = r"enter with: (http://\S+)"
"""What the server says of itself."""

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """So many answers in so many wall seconds, for so many seconds of the server's processor."""

    answers: int
    wall: float
    processor: float
    size: int

    @property
    def rate(self) -> float:
        return self.answers / self.wall


@contextmanager
def server(
    argv: Sequence[str | Path], address: str, *, env: Mapping[str, str], cwd: Path, core: int | None = None
) -> Iterator[tuple[str, psutil.Process]]:
    """A server, on one core where `core` says which; gives what `address` (a regular expression) finds in
    what it says first, and its process."""
    log = (cwd / "server.log").open("w+")
    with (
        log,
        subprocess.Popen(
            [str(word) for word in argv], cwd=cwd, env=os.environ | dict(env), stdout=log, stderr=log
        ) as child,
    ):
        process = psutil.Process(child.pid)
        if core is not None:
            process.cpu_affinity([core])
        try:
            for _ in range(600):
                found = re.search(address, (cwd / "server.log").read_text())
                if found:
                    yield found[1], process
                    break
                if child.poll() is not None:
                    break
                time.sleep(0.05)
            else:
                raise BenchError(f"{argv[0]} said no address")
        finally:
            child.terminate()


def serve(folder: Path) -> AbstractContextManager[tuple[str, psutil.Process]]:
    """The command, on one core; this process on the others."""
    words: list[str | Path] = [BIN / "python", "-m", "rocwright", "serve", "--open", "--port", "0"]
    return server(words, TOKEN, env={"ROCWRIGHT_HOME": str(folder / "home")}, cwd=folder, core=0)


@contextmanager
def elsewhere() -> Iterator[None]:
    """Not on the server's core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores - {0} or cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def place_of(link: str) -> tuple[Place, str]:
    """Where to connect to for a link, and what the host is called there."""
    parts = urlsplit(link)
    return (parts.hostname or "", parts.port or 80), parts.netloc


def answer(connection: socket.socket, request: bytes) -> int:
    """Ask once; the bytes of the body. Raises BenchError where the answer is none."""
    connection.sendall(request)
    head = b""
    while b"\r\n\r\n" not in head:
        more = connection.recv(65536)
        if not more:
            raise BenchError("the server closed the connection")
        head += more
    if not head.startswith(b"HTTP/1.1 200"):
        raise BenchError(head[:200].decode(errors="replace"))
    length = _LENGTH.search(head)
    if length is None:
        raise BenchError("the answer has no length")
    size = int(length[1])
    left = size - (len(head) - head.index(b"\r\n\r\n") - 4)
    room = memoryview(bytearray(1 << 18))
    while left > 0:
        left -= connection.recv_into(room, min(left, len(room)))
    return size


def get(host: str, path: str, more: str = "") -> bytes:
    """The bytes of a request."""
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode()


def crowd(place: Place, request: bytes, process: psutil.Process, clients: int, each: int) -> Asked:
    """So many clients that ask one after the other, each so often."""
    sizes: list[int] = []

    def ask() -> None:
        with socket.create_connection(place) as connection:
            sizes.extend(answer(connection, request) for _ in range(each))

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    before, begun = _processor(process), time.perf_counter()
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    wall = time.perf_counter() - begun
    if len(sizes) != clients * each:
        raise BenchError(f"{len(sizes)} of {clients * each} answers came")
    return Asked(answers=len(sizes), wall=wall, processor=_processor(process) - before, size=sizes[0])


def first_byte(place: Place, request: bytes) -> float:
    """Seconds from the request to the first byte of the answer, on a new connection."""
    with socket.create_connection(place) as connection:
        begun = time.perf_counter()
        connection.sendall(request)
        connection.recv(1)
        return time.perf_counter() - begun


def _processor(process: psutil.Process) -> float:
    every = [process, *process.children(recursive=True)]
    return sum(one.cpu_times().user + one.cpu_times().system for one in every)
