"""Who says how long sources may take waits that long for a host, once."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from rocbase.errors import NetworkError
from rocwheel_samples.tables import each
from rocwright.sources import git, index, web
from rocwright.sources.patience import Patience, asked, bounded, current, with_patience, within
from rocwright.sources.session import TRIES, retries

pytestmark = pytest.mark.timing


class Silent:
    """A server that takes connections, counts them, and says nothing."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=50)
        self.asked: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            try:
                self.asked.append(self._socket.accept()[0])
            except OSError:
                return

    def close(self) -> None:
        self._socket.close()
        for one in self.asked:
            one.close()


@pytest.fixture
def silent() -> Iterator[Silent]:
    server = Silent()
    yield server
    server.close()


@pytest.mark.parametrize(
    "ask",
    [
        lambda address: web.look(f"{address}/file", 30),
        lambda address: web.read_bytes(f"{address}/file", 30),
        lambda address: index.published("project", f"{address}/simple/", 30),
        lambda address: git.remote_refs(f"{address}/repository", 30),
    ],
    ids=["file", "page", "index", "git"],
)
def test_a_silent_host_is_waited_for_once(silent: Silent, ask: object) -> None:
    assert callable(ask)
    patience = Patience(0.5)
    with with_patience(patience):
        with pytest.raises(NetworkError) as first:
            ask(silent.address)
        with pytest.raises(NetworkError, match="is not asked again") as second:
            ask(silent.address)
    assert "is not asked again" not in first.value.message
    assert "silent for 0.5 s" in second.value.cause
    assert len(silent.asked) == 1
    assert list(patience.silent) == [silent.address.removeprefix("http://")]


def test_another_host_is_asked_all_the_same(silent: Silent) -> None:
    other = Silent()
    with with_patience(Patience(0.3)):
        for one in (silent, other):
            with pytest.raises(NetworkError):
                web.read_bytes(one.address, 30)
    other.close()
    assert [len(one.asked) for one in (silent, other)] == [1, 1]


def test_a_host_that_refuses_at_once_is_asked_again() -> None:
    patience = Patience(20)
    with with_patience(patience):
        for _ in range(2):
            with pytest.raises(NetworkError, match="cannot be downloaded"):
                web.read_bytes("http://127.0.0.1:1/x", 30)
    assert patience.silent == {}


def test_what_was_silent_long_ago_is_asked_again() -> None:
    patience = Patience(0.1, {"host": -1e9})
    with with_patience(patience), asked("http://host/x"):
        pass


def test_without_a_word_everything_is_as_patient_as_ever() -> None:
    assert current() is None
    assert (within(60), retries().total) == (60, TRIES - 1)
    with with_patience(Patience(5)):
        assert (within(60), within(2), retries().total) == (5, 2, 0)
    assert current() is None


@each(("seconds", "is_bounded"), [(0.1, True), (29, True), (30, False), (3600, False)])
def test_who_waits_as_long_as_usual_gets_the_usual_tries(seconds: float, is_bounded: bool) -> None:
    assert (bounded(seconds) is not None) is is_bounded
