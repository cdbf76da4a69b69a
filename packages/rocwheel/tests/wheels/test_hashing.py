"""The sha256 of pieces, with a thread and without."""

from __future__ import annotations

import gc
import hashlib
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.wheels import hashing
from rocwheel.wheels.hashing import AHEAD, BEGINNING, Sha256

PIECE = bytes(range(256)) * 4096


@given(st.lists(st.binary(max_size=64), max_size=40), st.integers(0, 200))
def test_it_is_hashlibs(pieces: list[bytes], beginning: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashing, "BEGINNING", beginning)
        digest = Sha256()
        for piece in pieces:
            digest.update(piece)
        assert digest.hexdigest() == hashlib.sha256(b"".join(pieces)).hexdigest()
        assert digest.size == sum(map(len, pieces))


def test_much_is_hashed_in_a_thread_that_ends() -> None:
    threads = threading.active_count()
    digest = Sha256()
    for _ in range(BEGINNING // len(PIECE) + 4 * AHEAD):
        digest.update(PIECE)
    assert threading.active_count() == threads + 1
    whole = hashlib.sha256(PIECE * (BEGINNING // len(PIECE) + 4 * AHEAD))
    assert digest.hexdigest() == whole.hexdigest()
    assert threading.active_count() == threads


def test_little_is_hashed_without_a_thread() -> None:
    threads = threading.active_count()
    digest = Sha256()
    digest.update(PIECE)
    assert threading.active_count() == threads
    assert digest.hexdigest() == hashlib.sha256(PIECE).hexdigest()


def test_no_more_than_a_few_pieces_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 0
    submit = ThreadPoolExecutor.submit

    def counted(pool: ThreadPoolExecutor, *args: Any) -> Future[Any]:
        nonlocal most
        most = max(most, pool._work_queue.qsize())
        return submit(pool, *args)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", counted)
    digest = Sha256()
    for _ in range(100):
        digest.update(PIECE)
    digest.hexdigest()
    assert most <= AHEAD


def test_where_no_thread_may_start_the_caller_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    digest = Sha256()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        for _ in range(8):
            digest.update(PIECE)
    digest.update(PIECE)
    assert digest.hexdigest() == hashlib.sha256(PIECE * 9).hexdigest()


def test_one_that_is_forgotten_leaves_no_thread() -> None:
    threads = threading.active_count()
    digest = Sha256()
    for _ in range(8):
        digest.update(PIECE)
    del digest
    gc.collect()
    end = time.monotonic() + 120
    while threading.active_count() > threads and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() == threads
