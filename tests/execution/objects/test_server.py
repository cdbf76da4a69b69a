"""The socket of a step: gets and puts objects of its domain, whatever is sent to it."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.execution.objects.test_resp import command

from rocwright.execution.objects import resp, server
from rocwright.execution.objects.server import ObjectServer
from rocwright.store.objects import Taken

pytestmark = pytest.mark.timing

KEY = "94569bd597n00ujff703k7jlog59bnu72"
NAMED = b"ccache:" + KEY.encode()


class Memory:
    """A domain in memory; `opens` lets puts through."""

    def __init__(self) -> None:
        self.found: dict[str, Taken] = {}
        self.put_with: dict[str, tuple[str, ...]] = {}
        self.asked: list[str] = []
        self.opens = threading.Event()
        self.opens.set()
        self.takes = True

    def get(self, key: str) -> Taken | None:
        self.asked.append(key)
        return self.found.get(key)

    def put(self, key: str, data: bytes, others: tuple[str, ...] = ()) -> bool:
        self.opens.wait(10)
        if self.takes:
            self.found[key] = Taken(data, "own", others)
            self.put_with[key] = others
        return self.takes


class Step:
    """A server at a socket, and what was noted."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "socket"
        self.memory = Memory()
        self.events: list[str] = []
        self.others: tuple[str, ...] = ()
        self.server = ObjectServer(self.memory, self._taken, lambda: self.others, self.events.append)

    def _taken(self, taken: Taken) -> None:
        self.events.append(f"noted {taken.keyid}")

    def connect(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(10)
        client.connect(str(self.path))
        return client

    def ask(self, *words: bytes) -> bytes:
        with self.connect() as client:
            return ask(client, *words)


def ask(client: socket.socket, *words: bytes) -> bytes:
    """The answer to a command, which ends with the end of a line."""
    client.sendall(command(*words))
    answer = b""
    while True:
        answer += client.recv(1 << 20)
        head, line, rest = answer.partition(b"\r\n")
        if line and (head[:1] != b"$" or head == b"$-1" or len(rest) == int(head[1:]) + 2):
            return answer


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Step]:
    step = Step(folder)
    with step.server.serving(step.path):
        yield step


@pytest.fixture
def step(tmp_path: Path) -> Iterator[Step]:
    with serving(tmp_path) as found:
        yield found


def until(holds: object) -> None:
    end = time.monotonic() + 10
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_was_put_is_had_with_whose_it_may_be_and_each_hit_is_counted(step: Step) -> None:
    step.others = ("six",)
    assert step.ask(b"GET", NAMED) == b"$-1\r\n"
    assert step.ask(b"SET", NAMED, b"\r\nobject\r\n") == b"+OK\r\n"
    until(lambda: KEY in step.memory.found)
    assert step.memory.put_with == {KEY: ("six",)}
    assert step.server.put == 1
    # what it has compiled itself is no hit
    assert step.ask(b"GET", NAMED) == b"$-1\r\n"
    assert step.events == []
    other = KEY[::-1]
    step.memory.found[other] = Taken(step.memory.found[KEY].data, "one", ())
    with step.connect() as client:
        for _ in range(3):
            assert ask(client, b"get", b"ccache:" + other.encode()) == b"$10\r\n\r\nobject\r\n\r\n"
    assert step.server.taken == {"one": 3}
    assert step.events == ["noted one"] * 3


def test_whose_it_is_is_noted_before_it_is_handed_out(step: Step) -> None:
    step.memory.found[KEY] = Taken(b"x", "one", ())

    def killed(taken: Taken) -> None:
        raise OSError("the disk is full")

    step.server._on_taken = killed
    with step.connect() as client:
        client.sendall(command(b"GET", NAMED))
        assert client.recv(100) == b""


@pytest.mark.parametrize(
    "words",
    [
        (b"GET", b"ccache:../../../etc/passwd"),
        (b"GET", KEY.encode()),
        (b"GET", b"ccache:" + b"\xff" * 20),
        (b"GET", NAMED, b"more"),
        (b"SET", NAMED),
        (b"SET", NAMED, b"x", b"EX"),
        (b"KEYS", b"*"),
        (b"FLUSHALL",),
        (b"CONFIG", b"SET", b"dir"),
        (b"GET",),
    ],
)
def test_nothing_but_getting_and_putting_objects_is_done(step: Step, words: tuple[bytes, ...]) -> None:
    assert step.ask(*words).startswith(b"-ERR")
    assert step.memory.asked == []
    assert step.memory.found == {}


def test_what_is_in_the_local_cache_already_is_not_sent_again_and_nothing_is_removed(step: Step) -> None:
    assert step.ask(b"EXISTS", NAMED) == b":1\r\n"
    step.memory.found[KEY] = Taken(b"x", "one", ())
    assert step.ask(b"DEL", NAMED) == b":0\r\n"
    assert step.ask(b"PING") == b"+PONG\r\n"
    assert KEY in step.memory.found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.builds(
                lambda name, size: b"*3\r\n$3\r\n%b\r\n$40\r\n%b\r\n$%d\r\nab" % (name, NAMED, size),
                st.sampled_from([b"SET", b"GET"]),
                st.integers(0, 2**70),
            ),
        ),
        max_size=6,
    )
)
def test_it_answers_on_after_whatever_was_sent(step: Step, pieces: list[bytes]) -> None:
    step.memory.found[KEY] = Taken(b"object", "one", ())
    clients = [step.connect() for _ in pieces]
    for client, piece in zip(clients, pieces, strict=True):
        with contextlib.suppress(OSError):
            client.sendall(piece)
    # half-open connections, garbage and lengths that never come do not keep others from an answer
    assert step.ask(b"GET", NAMED) == b"$6\r\nobject\r\n"
    for client in clients:
        client.close()
    until(lambda: not step.server._clients)
    assert step.server._waits == 0


def test_a_value_that_is_too_large_is_refused_and_told_once(
    step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "LARGEST", 100)
    for _ in range(2):
        assert step.ask(b"SET", NAMED, b"x" * 101).startswith(b"-ERR")
    assert step.ask(b"SET", NAMED, b"x" * 100) == b"+OK\r\n"
    assert step.events == ["shared compiler cache: an object of more than 100 B was not shared"]


def test_compilers_do_not_wait_for_a_slow_line_and_what_waits_is_bounded(
    step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "WAITING", 1000)
    step.memory.opens.clear()
    begun = time.monotonic()
    answers = [step.ask(b"SET", NAMED, b"x" * 400) for _ in range(5)]
    assert time.monotonic() - begun < 5
    assert [one[:1] for one in answers] == [b"+", b"+", b"-", b"-", b"-"]
    assert step.server.left == 3
    step.memory.opens.set()
    until(lambda: step.server._waits == 0)
    assert step.ask(b"SET", NAMED, b"x" * 400) == b"+OK\r\n"


def test_after_a_put_that_failed_nothing_more_is_put(step: Step) -> None:
    step.memory.takes = False
    assert step.ask(b"SET", NAMED, b"x") == b"+OK\r\n"
    until(lambda: not step.server._puts)
    step.memory.takes = True
    assert step.ask(b"SET", NAMED, b"x").startswith(b"-ERR")
    assert step.memory.found == {}


@pytest.mark.parametrize(("bound", "most"), [("MOST_REQUESTS", 3), ("MOST_BYTES", 30)])
def test_one_step_has_no_more_than_is_one_step_s(
    step: Step, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    monkeypatch.setattr(server, bound, most)
    step.memory.found[KEY] = Taken(b"x" * 10, "one", ())
    answers = [step.ask(b"GET", NAMED) for _ in range(10)]
    assert answers[0][:3] == b"$10"
    assert answers[-1] == b"$-1\r\n"
    assert 3 <= step.server.taken["one"] <= 4
    assert len([one for one in step.events if "more than one step may" in one]) == 1


def test_who_comes_when_all_places_are_taken_waits_and_is_not_turned_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 2)
    with serving(tmp_path) as step:
        first, second = step.connect(), step.connect()
        assert ask(first, b"PING") == ask(second, b"PING") == b"+PONG\r\n"
        third = step.connect()
        third.sendall(command(b"PING"))
        third.settimeout(0.3)
        with pytest.raises(TimeoutError):
            third.recv(100)
        first.close()
        third.settimeout(10)
        assert third.recv(100) == b"+PONG\r\n"
        second.close()
        third.close()


def test_the_end_does_not_wait_for_who_holds_a_connection_nor_long_for_the_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "LAST_SECONDS", 0.5)
    with serving(tmp_path) as step:
        client = step.connect()
        client.sendall(b"*3\r\n$3\r\nSET\r\n")
        step.memory.opens.clear()
        for _ in range(20):
            assert step.ask(b"SET", NAMED, b"x") == b"+OK\r\n"
        begun = time.monotonic()
    assert time.monotonic() - begun < 4
    assert "the bucket is slower" in step.events[-1]
    assert not step.path.exists()
    step.memory.opens.set()
    client.close()


def test_what_waits_at_the_end_is_sent(tmp_path: Path) -> None:
    with serving(tmp_path) as step:
        for number in range(50):
            step.ask(b"SET", b"ccache:%020d" % number, b"x")
    assert len(step.memory.found) == step.server.put == 50


def test_a_path_may_be_longer_than_the_name_of_a_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with serving(folder) as step:
        assert step.path.is_socket()
        assert step.path.stat().st_mode & 0o777 == 0o666
        link = tmp_path / "s"
        link.symlink_to(step.path.parent)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(link / "socket"))
            assert ask(client, b"PING") == b"+PONG\r\n"


def test_a_slow_reader_keeps_its_own_place_alone(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resp, "PATIENCE", 0.5)
    step.memory.found[KEY] = Taken(b"x" * 8_000_000, "one", ())
    with step.connect() as client:
        client.sendall(command(b"GET", NAMED))
        assert step.ask(b"PING") == b"+PONG\r\n"
        until(lambda: not step.server._clients)
