"""Work done several pieces at a time in threads, as far as memory and cores go; the results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")

MOST_WAITING = 16
"""Results that may wait for one before them."""


class MemoryJob(NamedTuple, Generic[T]):
    """Work that takes `memory` bytes while it lasts; with 0 it is done in the caller's thread.

    `end` is where what it reads ends.
    """

    memory: int
    end: int
    run: Callable[[], T]


def in_turn(jobs: Iterable[MemoryJob[T]], room: int, cores: int) -> Iterator[T]:
    """What the jobs give, in their order; those in threads take `room` bytes at most, but for one alone.

    `jobs` are asked for in the thread of the caller. Raises what a job raises, in its turn.
    """
    waiting: deque[tuple[int, Future[T]]] = deque()
    pool: ThreadPoolExecutor | None = None
    try:
        for job in jobs:
            alone = job.memory == 0
            while waiting and (alone or not _fits(job.memory, waiting, room)):
                yield waiting.popleft()[1].result()
            if alone:
                yield job.run()
                continue
            if pool is None:
                from concurrent.futures import ThreadPoolExecutor

                pool = ThreadPoolExecutor(cores)
            waiting.append((job.memory, pool.submit(job.run)))
        while waiting:
            yield waiting.popleft()[1].result()
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)


def _fits(memory: int, waiting: deque[tuple[int, Future[T]]], room: int) -> bool:
    under_way = sum(size for size, future in waiting if not future.done())
    return len(waiting) < MOST_WAITING and (not under_way or under_way + memory <= room)
