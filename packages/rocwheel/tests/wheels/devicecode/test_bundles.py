"""Compressed bundles that are unpacked beside one another."""

from __future__ import annotations

import gc
import os
import random
import struct
import threading
import weakref
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from mmap import mmap
from pathlib import Path
from threading import Thread

import pytest
import zstandard

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode.bundle import Bundle, read_bundle
from rocwheel.wheels.devicecode.bundles import Ahead, read_bundles
from rocwheel.wheels.devicecode.fatbin import fat_binary
from rocwheel.wheels.devicecode.unpacking import Plain, Rooms
from rocwheel.wheels.inspection import inspect
from rocwheel.wheels.marks import PAGE
from rocwheel.wheels.source import BLOCK, ByteSource, Inflated, MemorySource
from rocwheel_samples.fatbin import (
    compressed_bundle,
    entry_id,
    fatbin,
    gpu_elf,
    host_elf,
    linked_elf,
    plain_bundle,
    write_wheel,
)


def test_compressed_bundles_read_beside_one_another_are_as_each_is_alone() -> None:
    chance = random.Random(5)
    packed = [
        compressed_bundle(
            plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A, body=chance.randbytes(100 + 7000 * number)))]),
            version=2 + number % 2,
            method=1 - (number % 5 == 4),
        )
        for number in range(30)
    ]
    data = fatbin(packed)
    found = list(read_bundles(MemorySource(data), 0, len(data), hashes=True))
    assert found == [read_bundle(MemorySource(data), one.offset, len(data), hashes=True) for one in found]
    assert [one.size for one in found] == list(map(len, packed))


def test_of_those_a_damaged_one_is_told_after_those_before() -> None:
    body = random.Random(6).randbytes(5000)
    one = compressed_bundle(
        plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A, body=body))]), version=3, method=1
    )
    bad = bytearray(one)
    bad[-20] ^= 0xFF
    data = fatbin([one, one, bytes(bad), one])
    found = read_bundles(MemorySource(data), 0, len(data), hashes=True)
    assert [next(found).offset for _ in range(2)] == [0, len(data) // 4]
    with pytest.raises(CheckError, match=r"decompressed|hash|checksum"):
        next(found)
    assert len(list(read_bundles(MemorySource(data), 0, len(data) // 2))) == 2


def frame(content: bytes, *, told: bool = True) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=told).compress(content)


def packed(content: bytes, packed: bytes, *, size: int | None = None) -> bytes:
    """A compressed bundle of version 3 that claims to unpack to `size` bytes."""
    size = len(content) if size is None else size
    return struct.pack("<4sHHQQQ", b"CCOB", 3, 1, 32 + len(packed), size, 0) + packed


def test_a_bundle_is_read_alike_whether_or_not_its_frame_says_how_long_it_is() -> None:
    content = plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A, body=bytes(9000)))])
    for data in (packed(content, frame(content)), packed(content, frame(content, told=False))):
        (found,) = read_bundles(MemorySource(data), 0, len(data))
        assert found == read_bundle(MemorySource(data), 0, len(data))
        assert found.unpacked_size == len(content)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("more", [-1, 1, 1 << 20])
def test_a_bundle_that_unpacks_to_another_size_than_it_claims_is_refused(more: int, told: bool) -> None:
    content = plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A, body=bytes(9000)))])
    data = packed(content, frame(content, told=told), size=len(content) + more)
    with pytest.raises(CheckError, match=r"does not decompress to|overlaps another or lies outside"):
        list(read_bundles(MemorySource(data), 0, len(data)))


def test_a_frame_that_says_one_size_and_has_less_is_refused() -> None:
    content = plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A, body=random.Random(3).randbytes(300_000)))])
    data = packed(content, frame(content)[:-100_000])
    with pytest.raises(CheckError, match=r"does not decompress to|cannot be decompressed"):
        list(read_bundles(MemorySource(data), 0, len(data)))


def test_memory_taken_over_from_a_larger_bundle_shows_nothing_of_it() -> None:
    sizes = (50_000, 100, 70_000, 9000)
    contents = [
        plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A, body=random.Random(size).randbytes(size)))])
        for size in sizes
    ]
    data = fatbin([packed(one, frame(one)) for one in contents])
    source, rooms = MemorySource(data), Rooms()
    for one in contents:
        with rooms.unpacked(frame(one), len(one), source) as plain:
            assert plain.read_at(0, len(one)) == one
            with pytest.raises(CheckError, match="truncated"):
                plain.read_at(len(one) - 1, 2)
    assert [one.unpacked_size for one in read_bundles(source, 0, len(data))] == list(map(len, contents))


def test_no_two_threads_get_the_same_memory() -> None:
    rooms, room, got = Rooms(), mmap(-1, 100), []

    class Free(list[mmap]):
        """What is free; while one looks through it, another comes."""

        def __iter__(self) -> Iterator[mmap]:
            if not others:
                others.append(Thread(target=lambda: got.append(rooms._room(100))))
                others[0].start()
                others[0].join(0.5)
            return super().__iter__()

    others: list[Thread] = []
    rooms._free = Free([room])
    got.append(rooms._room(100))
    others[0].join()
    assert [one is room for one in got].count(True) == 1


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def inflated(data: bytes) -> Inflated:
    return Inflated(
        MemorySource(zlib.compress(data, wbits=-15), subject="x.so"), len(data), zlib.crc32(data), "x.so"
    )


def of_pages(*bundles: bytes) -> bytes:
    """Each at a page of its own, and bytes behind them that take long enough to inflate."""
    return b"".join(one + bytes(-len(one) % PAGE) for one in bundles) + bytes(64 * BLOCK)


def ahead_of(data: bytes, *, hashes: bool = True) -> tuple[Ahead, Inflated]:
    """What was begun when all of these bytes have gone by."""
    source = inflated(data)
    ahead = Ahead(source, hashes=hashes).__enter__()
    source.read_at(len(data) - 1, 1)
    for _, future in ahead._started.values():
        future.exception(60)
    return ahead, source


def small_bundle(seed: int) -> bytes:
    code = gpu_elf(0x4A, body=random.Random(seed).randbytes(3 * PAGE))
    return compressed_bundle(plain_bundle([(entry_id("gfx1151"), code)]), version=2 + seed % 2, method=1)


def test_bundles_that_go_by_are_read_before_anybody_asks_and_are_the_same() -> None:
    data = of_pages(*(small_bundle(seed) for seed in range(8)))
    ahead, _ = ahead_of(data)
    with ahead:
        places = list(ahead._started)
        assert len(places) == 8
        for at in places:
            assert ahead.take(at, len(data)) == read_bundle(MemorySource(data), at, len(data), hashes=True)
            assert ahead.take(at, len(data)) is None, "it is given once"
        assert ahead.take(7, len(data)) is None


def test_what_lies_ahead_is_not_told_where_it_reaches_behind_the_end() -> None:
    data = of_pages(small_bundle(1))
    ahead, _ = ahead_of(data)
    with ahead:
        assert ahead.take(0, len(small_bundle(1)) - 1) is None


def test_what_has_not_begun_when_somebody_asks_is_left_to_him(monkeypatch: pytest.MonkeyPatch) -> None:
    held, go = threading.Event(), threading.Event()
    read = Ahead._read

    def slow(self: Ahead, offset: int, data: memoryview) -> Bundle | None:
        held.set()
        go.wait(60)
        return read(self, offset, data)

    monkeypatch.setattr(Ahead, "_read", slow)
    data = of_pages(*(small_bundle(seed) for seed in range(4)))
    source = inflated(data)
    with Ahead(source, hashes=True) as ahead:
        source.read_at(len(data) - 1, 1)
        held.wait(60)
        first, second, *_ = ahead._started
        threading.Timer(0.1, go.set).start()
        assert ahead.take(second, len(data)) is None
        assert ahead.take(first, len(data)) is not None
        found = list(read_bundles(source, 0, len(data) - 64 * BLOCK, hashes=True, ahead=ahead))
    assert [one.size for one in found] == [len(small_bundle(seed)) for seed in range(4)]


def test_a_damaged_one_is_told_in_its_turn_as_without_a_thread() -> None:
    bad = bytearray(small_bundle(2))
    bad[-20] ^= 0xFF
    data = of_pages(small_bundle(0), small_bundle(1), bytes(bad))
    end = len(data) - 64 * BLOCK
    ahead, source = ahead_of(data)
    with ahead:
        found = read_bundles(source, 0, end, hashes=True, ahead=ahead)
        assert [next(found).offset for _ in range(2)] == [
            0,
            len(small_bundle(0)) + -len(small_bundle(0)) % PAGE,
        ]
        with pytest.raises(CheckError) as told:
            next(found)
    with pytest.raises(CheckError) as alone:
        list(read_bundles(MemorySource(data, subject="x.so"), 0, end, hashes=True))
    assert (told.value.message, told.value.subject) == (alone.value.message, alone.value.subject)


def test_a_damaged_one_that_nobody_asks_for_is_no_error(tmp_path: Path) -> None:
    bad = bytearray(small_bundle(2))
    bad[-20] ^= 0xFF
    library = bytearray(linked_elf([small_bundle(0)]))
    (table_at,) = struct.unpack_from("<Q", library, 40)
    table = library[table_at:]
    library = library[:table_at] + bytes(-table_at % PAGE) + bad + bytes(64 * BLOCK)
    struct.pack_into("<Q", library, 40, len(library))
    wheel = write_wheel(tmp_path / "x.whl", {"x.so": bytes(library + table)})
    (found,) = inspect(wheel).libraries
    assert [one.target_id for one in found.targets] == ["gfx1151"]


def test_no_bundle_of_a_library_in_a_wheel_is_unpacked_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    unpacked = Rooms.unpacked

    def counted(self: Rooms, frame: bytes, size: int, source: ByteSource) -> AbstractContextManager[Plain]:
        sizes.append(size)
        return unpacked(self, frame, size, source)

    monkeypatch.setattr(Rooms, "unpacked", counted)
    inside = [small_bundle(seed) for seed in range(5, 8)]
    files = {
        "x.so": linked_elf([small_bundle(seed) for seed in range(5)]),
        "y.so": host_elf(b"".join(inside)),
    }
    found = inspect(write_wheel(tmp_path / "x.whl", files)).libraries
    assert [len(one.code) for one in found] == [5, 3]
    assert len(sizes) == 8


def test_a_library_that_was_read_is_let_go_at_once() -> None:
    source = inflated(linked_elf([small_bundle(0)]) + bytes(64 * BLOCK))
    gone = weakref.ref(source)
    gc.disable()
    try:
        assert fat_binary(source, hashes=True) is not None
        del source
        assert gone() is None, "nothing waits for the collector of cycles, which may come late"
    finally:
        gc.enable()
