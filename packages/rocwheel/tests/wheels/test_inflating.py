"""Deflated data inflated block by block, the next blocks in a thread beside."""

from __future__ import annotations

import random
import threading
import time
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.wheels.inflating import BATCHES_AHEAD, BEGINNING, BLOCKS_AT_ONCE, PIECES_AHEAD, Inflating

SIZE = 1000


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def in_pieces(data: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


def blocks(inflate: Inflating) -> list[bytes]:
    found = []
    while block := inflate.block():
        found.append(block)
    return found


def content(count: int) -> bytes:
    """Some that packs well and some that does not."""
    chance = random.Random(count)
    parts = (chance.choice((bytes(700), chance.randbytes(300), b"abc" * 150)) for _ in range(count // 200))
    return b"".join(parts)[:count]


@given(st.integers(0, 60 * SIZE), st.integers(1, 5 * SIZE))
def test_the_blocks_are_what_was_deflated(count: int, piece: int) -> None:
    data = content(count)
    inflate = Inflating(in_pieces(deflated(data), piece), SIZE)
    assert blocks(inflate) == list(in_pieces(data, SIZE))
    assert inflate.is_whole
    assert inflate.block() == b""


def test_only_behind_the_beginning_a_thread_inflates_ahead() -> None:
    taken: list[int] = []

    def pieces() -> Iterator[bytes]:
        for one in in_pieces(deflated(data), SIZE):
            taken.append(len(one))
            yield one

    data = random.Random(1).randbytes(100 * SIZE)
    inflate = Inflating(pieces(), SIZE)
    for _ in range(BEGINNING - 1):
        inflate.block()
    assert len(taken) <= BEGINNING, "no more is read than was asked for"
    begun = threading.active_count()
    inflate.block()
    inflate.block()
    assert len(taken) > BEGINNING + 1
    assert len(taken) <= BEGINNING + 2 + BLOCKS_AT_ONCE + PIECES_AHEAD, "nor than is inflated next"
    assert threading.active_count() <= begun + 1
    assert b"".join(blocks(inflate)) == data[(BEGINNING + 1) * SIZE :]


def test_no_more_is_inflated_ahead_than_a_few_blocks() -> None:
    packed = deflated(bytes(10_000 * SIZE))
    inflate = Inflating(iter([packed]), SIZE)
    for _ in range(BEGINNING):
        inflate.block()
    most = 0
    while inflate.block():
        while inflate._running:
            time.sleep(0.0001)
        held = len(inflate._ready) + sum(len(one.parts) for one in inflate._batches)
        assert held <= (BATCHES_AHEAD + 1) * BLOCKS_AT_ONCE
        most = max(most, held)
    assert most > BLOCKS_AT_ONCE, "the thread goes on while blocks are taken"


@pytest.mark.parametrize("count", [3, 200])
def test_damaged_data_are_told_once_what_came_before_is_given(count: int) -> None:
    data = random.Random(2).randbytes(count * SIZE)
    packer = zlib.compressobj(wbits=-15)
    sound = packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH)
    inflate = Inflating(in_pieces(sound + b"\x06" + bytes(50), 7 * SIZE), SIZE)  # a block of no known kind
    given_before = []
    with pytest.raises(Exception, match=r"(?i)invalid"):
        while True:
            given_before.append(inflate.block())
    assert b"" not in given_before
    assert data.startswith(b"".join(given_before))
    # isal itself looks ahead by its window
    assert len(data) - sum(map(len, given_before)) <= 64 * 1024


@pytest.mark.parametrize("count", [3, 200])
def test_data_that_are_cut_short_are_not_whole(count: int) -> None:
    data = random.Random(3).randbytes(count * SIZE)
    inflate = Inflating(in_pieces(deflated(data)[:-SIZE], 7 * SIZE), SIZE)
    assert data.startswith(b"".join(blocks(inflate)))
    assert not inflate.is_whole


def test_where_no_thread_can_be_had_it_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    data = content(100 * SIZE)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        found = blocks(Inflating(in_pieces(deflated(data), SIZE), SIZE))
    assert b"".join(found) == data


def test_it_is_not_over_while_a_thread_is_at_it_or_what_it_did_is_not_taken() -> None:
    data = content(20 * SIZE)
    inflate = Inflating(in_pieces(deflated(data), 10**6), SIZE)
    inflate._lay_ready(2)
    inflate._running = True  # as the thread says before it begins
    inflate._run()
    assert inflate._batches and not inflate._is_over()
    for _ in range(3):
        inflate._batches.clear()
        inflate._run()
    inflate._batches.clear()
    assert inflate.is_whole and inflate._is_over()
    inflate._running = True
    assert not inflate._is_over()
