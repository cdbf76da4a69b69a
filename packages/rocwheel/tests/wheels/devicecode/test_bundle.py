"""Compressed bundles that are unpacked beside one another."""

from __future__ import annotations

import random

import pytest

from rocwheel.errors import CheckError
from rocwheel.wheels.devicecode.bundle import read_bundle, read_bundles
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
