"""Commands from a stranger: read as they are, or refused within bounds."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel_samples.tables import each
from rocwright.execution.objects import resp
from rocwright.execution.objects.resp import NotAdmittedError, ProtocolError, Reader

pytestmark = pytest.mark.timing

MOST = 1000


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(one), one) for one in words)


def read(data: bytes, admit: Callable[[int], bool] = lambda size: size <= MOST) -> list[list[bytes] | str]:
    """What a reader makes of these bytes, to their end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        writer = threading.Thread(target=_write, args=(theirs, data), daemon=True)
        writer.start()
        reader = Reader(ours, admit)
        found: list[list[bytes] | str] = []
        while True:
            try:
                words = reader.command()
            except NotAdmittedError:
                found.append("not admitted")
                continue
            except ProtocolError as error:
                found.append(str(error))
                ours.shutdown(socket.SHUT_RDWR)
                break
            if words is None:
                break
            found.append(words)
        writer.join(10)
        return found


def _write(client: socket.socket, data: bytes) -> None:
    try:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
    except OSError:
        pass


WORD = st.binary(max_size=60)
COMMANDS = st.lists(
    st.one_of(
        st.lists(WORD, min_size=1, max_size=2),
        st.tuples(WORD, WORD, st.binary(max_size=MOST)).map(list),
    ),
    max_size=5,
)


@given(COMMANDS)
def test_commands_are_read_as_they_were_sent(commands: list[list[bytes]]) -> None:
    assert read(b"".join(command(*one) for one in commands)) == commands


@given(st.binary(max_size=200))
def test_no_bytes_at_all_do_harm(data: bytes) -> None:
    read(data)


@given(st.lists(WORD, min_size=1, max_size=3), st.data())
def test_a_command_with_some_bytes_changed_is_read_or_refused(
    words: list[bytes], data: st.DataObject
) -> None:
    sent = bytearray(command(*words))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(sent) - 1))
        sent[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
        if not sent:
            return
    read(bytes(sent))


@each(
    "data",
    [
        b"GET x\r\n",
        b"*0\r\n",
        b"*5\r\n",
        b"*-1\r\n",
        b"*99999999999999999999999999\r\n",
        b"*2\r\n$3\r\nGET\r\n$999999999\r\n",
        b"*2\r\n$-1\r\n",
        b"*2\r\n$3\r\nGETxx",
        b"*1\r\n*1\r\n",
        "*\u0661\r\n".encode(),
        b"*" + b"1" * 10_000,
        command(b"GET", b"x")[:-3],
    ],
)
def test_what_is_no_command_is_refused(data: bytes) -> None:
    assert len(found := read(data)) == 1
    assert isinstance(found[0], str)


def test_only_a_value_may_be_long() -> None:
    long = b"x" * (resp.MOST_WORD + 1)
    for words in ((long,), (b"GET", long), (b"SET", b"x", b"y", long)):
        assert read(command(*words))[-1] == "a word is too long"


def test_a_value_without_room_is_read_to_its_end_and_what_follows_is_understood() -> None:
    after = command(b"GET", b"x")
    assert read(command(b"SET", b"x", b"y" * 5_000_000) + after) == ["not admitted", [b"GET", b"x"]]


def test_a_declared_length_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    import tracemalloc

    tracemalloc.start()
    try:
        read(b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$60000000000\r\nabc", admit=lambda size: True)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_command_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resp, "PATIENCE", 0.2)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        # however often something comes
        theirs.sendall(b"*1\r\n$200\r\n")
        stop = threading.Event()

        def trickle() -> None:
            while not stop.wait(0.05):
                theirs.send(b"x")

        writer = threading.Thread(target=trickle)
        writer.start()
        try:
            with pytest.raises(TimeoutError):
                Reader(ours, lambda size: True).command()
        finally:
            stop.set()
            writer.join()


def test_who_does_not_read_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resp, "PATIENCE", 0.2)
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(TimeoutError):
        resp.send(ours, b"x" * 50_000_000)
