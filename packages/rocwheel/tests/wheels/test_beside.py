"""Work done beside other work: in its order, all of it, and with its failures."""

from __future__ import annotations

import threading

import pytest

from rocwheel.wheels.beside import MOST_WAITING, Beside


@pytest.mark.parametrize("little", [True, False])
def test_all_is_done_in_its_order_when_the_context_ends(little: bool) -> None:
    seen: list[tuple[int, bytes]] = []
    with Beside(little=little) as beside:
        for number in range(100):
            beside.do(lambda at, data: seen.append((at, data)), number, bytes([number]))
    assert seen == [(number, bytes([number])) for number in range(100)]


def test_no_more_waits_than_memory_is_meant_for() -> None:
    go, done = threading.Event(), []

    def slow(at: int, data: bytes) -> None:
        go.wait(10)
        done.append(at)

    with Beside(little=False) as beside:
        threading.Timer(0.2, go.set).start()
        for number in range(MOST_WAITING + 2):
            beside.do(slow, number, b"")
        assert done  # the last had to wait for the first


@pytest.mark.parametrize("little", [True, False])
def test_what_it_raises_comes_out(little: bool) -> None:
    def fail(at: int, data: bytes) -> None:
        raise ValueError(f"piece {at}")

    with pytest.raises(ValueError, match="piece 3"), Beside(little=little) as beside:
        beside.do(fail, 3, b"")


def test_what_the_context_raises_is_not_hidden() -> None:
    def fail(at: int, data: bytes) -> None:
        raise ValueError

    with pytest.raises(KeyError), Beside(little=False) as beside:
        beside.do(fail, 0, b"")
        raise KeyError
