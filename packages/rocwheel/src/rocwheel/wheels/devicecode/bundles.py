"""The bundles of a file, one after another: compressed ones unpacked in threads, beside one another.

Of a library in a wheel that begins while the rest of it is still inflated: where its bundles are is told only
by tables at its end, but what begins like a compressed bundle says how long it is, and mostly is one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode.bundle import (
    ALIGNMENT,
    COMPRESSED_MAGIC,
    MAGIC,
    Bundle,
    entries_of,
    is_bundle,
    read_bundle,
    read_packed_header,
)
from rocwheel.wheels.devicecode.unpacking import Rooms, told_size, unsound
from rocwheel.wheels.source import CHUNK, ByteSource, MemorySource

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

AT_ONCE = 2
"""Compressed bundles that are unpacked beside one another: AMD's take some 80 MB of memory each."""

LARGEST_HELD, LARGEST_PLAIN, ROOM = 16 * 1024 * 1024, 128 * 1024 * 1024, 160 * 1024 * 1024
"""Bytes of a compressed bundle that is unpacked whole beside others, of it unpacked, and what all these may
take meanwhile."""


class Ahead:
    """Compressed bundles that are unpacked in a thread as they go by, one at a time, before anybody asks.

    Nothing but the time depends on it, but that what is unpacked in vain counts as work on the file.
    """

    def __init__(self, source: ByteSource, *, hashes: bool) -> None:
        self.rooms = Rooms()
        self._source: ByteSource | None = source
        self._budget, self._subject = source.budget, source.subject
        self._hashes = hashes
        self._pool: ThreadPoolExecutor | None = None
        self._started: dict[int, tuple[int, Future[Bundle | None]]] = {}
        self._over = False

    def __enter__(self) -> Ahead:
        if self._source is not None and (os.cpu_count() or 1) > 1:
            self._source.expect_bundles(self._see)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        # the source knows of this: without the way back, both go when they are used no more
        self._source = None
        self._started.clear()

    def take(self, offset: int, end: int) -> Bundle | None:
        """The bundle at `offset`, if it was read and ends by `end`; nothing is begun from then on.

        One that cannot be read is left to who asks: why is told in one way.
        """
        self._end()
        behind, future = self._started.pop(offset, (0, None))
        if future is None or future.cancelled() or behind > end:
            return None
        try:
            return future.result()
        except CheckError:
            return None

    def _see(self, offset: int, data: memoryview) -> None:
        """What begins like a compressed bundle, and is as long as it says."""
        if self._over:
            return
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(1)
        self._started[offset] = offset + len(data), self._pool.submit(self._read, offset, data)

    def _read(self, offset: int, data: memoryview) -> Bundle | None:
        source = MemorySource(data, self._budget, self._subject)
        job = beside_others(source, 0, source.size, self._hashes, self.rooms)
        return job.run()._replace(offset=offset) if job else None

    def _end(self) -> None:
        """What has not begun by now is left to who asks: those are unpacked two at a time."""
        self._over = True
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def read_bundles(
    source: ByteSource,
    begin: int,
    end: int,
    *,
    hashes: bool = False,
    heads: bool = False,
    ahead: Ahead | None = None,
) -> Iterator[Bundle]:
    """The bundles that follow one another in bytes `begin` to `end`, with zeros between them.

    `ahead` may have read some of them. Raises CheckError for anything that is no whole bundle, and where an
    entry's name and the header of its code object do not agree. Memory use does not grow with what the file
    holds.
    """
    jobs = _readings(source, begin, end, hashes, heads, ahead)
    yield from in_turn(jobs, ROOM, min(AT_ONCE, os.cpu_count() or 1))


def read_one(
    source: ByteSource, offset: int, end: int, *, hashes: bool, heads: bool, ahead: Ahead | None
) -> Bundle:
    """The bundle at `offset`, which `ahead` may have read; as `read_bundle`."""
    bundle = ahead.take(offset, end) if ahead else None
    return bundle or read_bundle(source, offset, end, hashes=hashes, heads=heads)


def beside_others(
    source: ByteSource, offset: int, end: int, hashes: bool, rooms: Rooms
) -> MemoryJob[Bundle] | None:
    """The reading of a compressed bundle from memory; None for what is none, is large, or does not say so."""
    if source.read_at(offset, min(len(COMPRESSED_MAGIC), end - offset)) != COMPRESSED_MAGIC:
        return None
    bundle, expected = read_packed_header(source, offset, end)
    size = bundle.unpacked_size
    if bundle.version == 1 or bundle.compression != "zstd":
        return None
    if bundle.size > LARGEST_HELD or size > LARGEST_PLAIN:
        return None
    frame = source.read_at(offset + bundle.header_size, bundle.size - bundle.header_size)
    if told_size(frame) != size:
        return None

    def read() -> Bundle:
        with rooms.unpacked(frame, size, source) as plain:
            entries, _ = entries_of(lambda: plain.read_at, size, source.subject)
            if hashes:
                plain.check_hash(expected)
        return bundle._replace(entries=entries)

    return MemoryJob(bundle.size + size, bundle.end, read)


def _readings(
    source: ByteSource, begin: int, end: int, hashes: bool, heads: bool, ahead: Ahead | None
) -> Iterator[MemoryJob[Bundle]]:
    rooms = ahead.rooms if ahead else Rooms()
    position = _next_bundle(source, begin, begin, end)
    while position is not None:
        yield (job := _reading(source, position, end, hashes, heads, ahead, rooms))
        position = _next_bundle(source, begin, job.end, end)


def _reading(
    source: ByteSource, offset: int, end: int, hashes: bool, heads: bool, ahead: Ahead | None, rooms: Rooms
) -> MemoryJob[Bundle]:
    read_ahead = ahead.take(offset, end) if ahead else None
    if read_ahead is None and not heads and (job := beside_others(source, offset, end, hashes, rooms)):
        return job
    bundle = read_ahead or read_bundle(source, offset, end, hashes=hashes, heads=heads)
    return MemoryJob(0, bundle.end, lambda: bundle)


def _next_bundle(source: ByteSource, begin: int, position: int, end: int) -> int | None:
    """Where the next bundle begins: a whole page from `begin`, else at the next byte that is not zero."""
    page = begin - (begin - position) // ALIGNMENT * ALIGNMENT
    if page + len(MAGIC) <= end and is_bundle(source.read_at(page, len(MAGIC))):
        return page
    for offset in range(position, end, CHUNK):
        data = source.read_at(offset, min(CHUNK, end - offset))
        if stripped := data.lstrip(b"\0"):
            start = offset + len(data) - len(stripped)
            if not is_bundle(source.read_at(start, min(len(MAGIC), end - start))):
                raise unsound(source.subject, f"at byte {start:,} there is neither a bundle nor padding")
            return start
    return None


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
