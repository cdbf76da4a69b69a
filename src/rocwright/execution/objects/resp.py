"""As much of the Redis protocol as ccache speaks, read from a stranger: bounded in bytes and in time.

ccache sends GET, SET, EXISTS and DEL, each as an array of bulk strings, and its key as `ccache:DIGEST`; with
neither a password nor a number of a database it sends nothing else. Sources: redisstorage.cpp of ccache 4.7.5
(Debian bookworm), 4.11.2 (trixie) and 4.14 (sid); https://redis.io/docs/latest/develop/reference/protocol-spec.
The readers of the Redis clients for Python read replies and know no bounds.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

PREFIX = b"ccache:"

OK = b"+OK\r\n"
MISS = b"$-1\r\n"
ONE, NONE = b":1\r\n", b":0\r\n"

MOST_WORDS = 4
VALUE = 2
"""Which of the words of SET is the value."""

MOST_DIGITS = 20
MOST_WORD = 256
"""Bytes of a command or a key."""

PATIENCE = 30.0
"""Seconds in which all of a command must have come once it has begun, and all of an answer gone."""

PIECE = 1 << 18
"""Bytes that are received at once."""


class ProtocolError(ValueError):
    """What is no command; the connection is of no use any more."""


class NotAdmittedError(ValueError):
    """A value that there was no room for; it was read to its end and thrown away."""


def error(text: str) -> bytes:
    """An answer that says what is wrong."""
    return f"-ERR {text}\r\n".encode()


def bulk(data: bytes) -> bytes:
    """The head of an answer that brings bytes; they follow, and `END`."""
    return b"$%d\r\n" % len(data)


END = b"\r\n"


class Reader:
    """The commands that come through a socket."""

    def __init__(self, client: socket.socket, admit: Callable[[int], bool]) -> None:
        """`admit` is asked whether there is room for a value of so many bytes, before any of them is read."""
        self._client, self._admit = client, admit
        self._buffer = bytearray()
        self._until = 0.0

    def command(self) -> list[bytes] | None:
        """The words of the next command; None where there are no more.

        Waits for it as long as it takes to begin. Raises ProtocolError, NotAdmittedError, and OSError where
        it does not end.
        """
        if not self._buffer:
            self._client.settimeout(None)
            self._buffer += self._client.recv(PIECE)
            if not self._buffer:
                return None
        self._until = time.monotonic() + PATIENCE
        count = self._number(b"*")
        if not 1 <= count <= MOST_WORDS:
            raise ProtocolError("that many words are no command")
        words: list[bytes] = []
        admitted = True
        for place in range(count):
            size = self._number(b"$")
            if place == VALUE and not (admitted := self._admit(size)):
                self._skip(size)
            elif place != VALUE and size > MOST_WORD:
                raise ProtocolError("a word is too long")
            else:
                words.append(self._exactly(size))
            if self._exactly(2) != END:
                raise ProtocolError("a word does not end where it should")
        if not admitted:
            raise NotAdmittedError("there is no room for that value")
        return words

    def _number(self, kind: bytes) -> int:
        line = self._line()
        if line[:1] != kind or not line[1:].isdigit():
            raise ProtocolError("a number is missing")
        return int(line[1:])

    def _line(self) -> bytes:
        while (end := self._buffer.find(END)) < 0:
            if len(self._buffer) > MOST_DIGITS:
                raise ProtocolError("a number is too long")
            self._more()
        if end > MOST_DIGITS:
            raise ProtocolError("a number is too long")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _exactly(self, size: int) -> bytes:
        # what is declared takes no memory before it has come
        while len(self._buffer) < size:
            self._more()
        found = bytes(self._buffer[:size])
        del self._buffer[:size]
        return found

    def _skip(self, size: int) -> None:
        """To close the connection would end a ccache that still writes with a signal."""
        while size > len(self._buffer):
            size -= len(self._buffer)
            self._buffer.clear()
            self._more()
        del self._buffer[:size]

    def _more(self) -> None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("a command did not end")
        self._client.settimeout(left)
        found = self._client.recv(PIECE)
        if not found:
            raise ProtocolError("it ended in the middle of a command")
        self._buffer += found


def send(client: socket.socket, *parts: bytes) -> None:
    """Send an answer. Raises OSError where nobody takes it in time."""
    client.settimeout(PATIENCE)
    for part in parts:
        client.sendall(part)
