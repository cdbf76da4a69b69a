"""Compressed bundles that are unpacked beside one another."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from threading import Thread

import pytest
import zstandard

from rocwheel.errors import CheckError
from rocwheel.wheels.devicecode.bundle import read_bundle, read_bundles
from rocwheel.wheels.devicecode.unpacking import Rooms
from rocwheel.wheels.source import Held
from rocwheel_samples.fatbin import compressed_bundle, entry_id, fatbin, gpu_elf, plain_bundle


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
    found = list(read_bundles(Held(data), 0, len(data), hashes=True))
    assert found == [read_bundle(Held(data), one.offset, len(data), hashes=True) for one in found]
    assert [one.size for one in found] == list(map(len, packed))


def test_of_those_a_damaged_one_is_told_after_those_before() -> None:
    body = random.Random(6).randbytes(5000)
    one = compressed_bundle(
        plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A, body=body))]), version=3, method=1
    )
    bad = bytearray(one)
    bad[-20] ^= 0xFF
    data = fatbin([one, one, bytes(bad), one])
    found = read_bundles(Held(data), 0, len(data), hashes=True)
    assert [next(found).offset for _ in range(2)] == [0, len(data) // 4]
    with pytest.raises(CheckError, match=r"decompressed|hash|checksum"):
        next(found)
    assert len(list(read_bundles(Held(data), 0, len(data) // 2))) == 2


def frame(content: bytes, *, told: bool = True) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=told).compress(content)


def packed(content: bytes, packed: bytes, *, size: int | None = None) -> bytes:
    """A compressed bundle of version 3 that claims to unpack to `size` bytes."""
    size = len(content) if size is None else size
    return struct.pack("<4sHHQQQ", b"CCOB", 3, 1, 32 + len(packed), size, 0) + packed


def test_a_bundle_is_read_alike_whether_or_not_its_frame_says_how_long_it_is() -> None:
    content = plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A, body=bytes(9000)))])
    for data in (packed(content, frame(content)), packed(content, frame(content, told=False))):
        (found,) = read_bundles(Held(data), 0, len(data))
        assert found == read_bundle(Held(data), 0, len(data))
        assert found.unpacked_size == len(content)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("more", [-1, 1, 1 << 20])
def test_a_bundle_that_unpacks_to_another_size_than_it_claims_is_refused(more: int, told: bool) -> None:
    content = plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A, body=bytes(9000)))])
    data = packed(content, frame(content, told=told), size=len(content) + more)
    with pytest.raises(CheckError, match=r"does not decompress to|overlaps another or lies outside"):
        list(read_bundles(Held(data), 0, len(data)))


def test_a_frame_that_says_one_size_and_has_less_is_refused() -> None:
    content = plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A, body=random.Random(3).randbytes(300_000)))])
    data = packed(content, frame(content)[:-100_000])
    with pytest.raises(CheckError, match=r"does not decompress to|cannot be decompressed"):
        list(read_bundles(Held(data), 0, len(data)))


def test_memory_taken_over_from_a_larger_bundle_shows_nothing_of_it() -> None:
    sizes = (50_000, 100, 70_000, 9000)
    contents = [
        plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A, body=random.Random(size).randbytes(size)))])
        for size in sizes
    ]
    data = fatbin([packed(one, frame(one)) for one in contents])
    source, rooms = Held(data), Rooms()
    for one in contents:
        with rooms.unpacked(frame(one), len(one), source) as plain:
            assert plain.read_at(0, len(one)) == one
            with pytest.raises(CheckError, match="truncated"):
                plain.read_at(len(one) - 1, 2)
    assert [one.unpacked_size for one in read_bundles(source, 0, len(data))] == list(map(len, contents))


def test_no_two_threads_get_the_same_memory() -> None:
    rooms, room, got = Rooms(), bytearray(100), []

    class Free(list[bytearray]):
        """What is free; while one looks through it, another comes."""

        def __iter__(self) -> Iterator[bytearray]:
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
