"""Deflated data read in one pass: what is read again was kept."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocbase.errors import CheckError
from rocwheel.wheels import marks
from rocwheel.wheels.elf import FRONT
from rocwheel.wheels.inspection import inspect
from rocwheel.wheels.marks import PLACE_LIMIT
from rocwheel.wheels.source import BLOCK, Inflated, MemorySource
from rocwheel_samples.fatbin import (
    compressed_bundle,
    entry_id,
    gpu_elf,
    linked_elf,
    plain_bundle,
    write_wheel,
)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The block at which each pass over deflated data ended before the next began."""
    seen: list[int] = []
    restart = Inflated._restart

    def counted(self: Inflated) -> None:
        if getattr(self, "_next", 0):
            seen.append(self._next)
        restart(self)

    monkeypatch.setattr(Inflated, "_restart", counted)
    yield seen


def large_library(count: int, *, body: int = 3 * BLOCK) -> bytes:
    """A library whose section names lie far before its end, with compressed bundles of many targets."""
    chance = random.Random(1)
    targets = {"gfx1100": 0x41, "gfx1151": 0x4A, "gfx803": 0x2A}
    code = [(entry_id(name), gpu_elf(flags, body=chance.randbytes(body))) for name, flags in targets.items()]
    bundle = compressed_bundle(plain_bundle(code), version=3, method=1)
    library = bytearray(linked_elf([bundle] * count))
    (table_at,) = struct.unpack_from("<Q", library, 40)
    sections, names = struct.unpack_from("<HH", library, 60)
    table = library[table_at : table_at + 64 * sections]
    names_at, names_size = struct.unpack_from("<QQ", table, 64 * names + 24)
    # the names, then what no loader reads, then the section table: as with a large symbol table
    struct.pack_into("<Q", table, 64 * names + 24, len(library))
    library += library[names_at : names_at + names_size]
    library += random.Random(2).randbytes(70 * BLOCK)
    struct.pack_into("<Q", library, 40, len(library))
    return bytes(library + table)


def test_the_targets_of_a_large_library_take_one_pass(tmp_path: Path, passes: list[int]) -> None:
    wheel = write_wheel(tmp_path / "x.whl", {"x.so": large_library(3)})
    found = inspect(wheel, heads=True)
    assert {one.target_id: one.count for one in found.totals} == {"gfx1100": 3, "gfx1151": 3, "gfx803": 3}
    assert passes == []


@pytest.mark.parametrize(("room", "count"), [(marks.WHOLE_BUNDLES, 0), (4 * 1024**2, 1)])
def test_all_of_it_takes_one_too_where_its_packed_bundles_can_be_kept(
    tmp_path: Path, passes: list[int], monkeypatch: pytest.MonkeyPatch, room: int, count: int
) -> None:
    monkeypatch.setattr(marks, "WHOLE_BUNDLES", room)
    # more than is kept of the front of any library
    library = large_library(4, body=FRONT // 6)
    found = inspect(write_wheel(tmp_path / "x.whl", {"x.so": library}))
    assert {one.target_id: one.count for one in found.totals} == {"gfx1100": 4, "gfx1151": 4, "gfx803": 4}
    assert len(passes) == count


def test_wrappers_far_from_both_ends_take_no_second_pass(tmp_path: Path, passes: list[int]) -> None:
    body = random.Random(3).randbytes(FRONT + BLOCK)
    library = bytearray(linked_elf([plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A, body=body))])]))
    (table_at,) = struct.unpack_from("<Q", library, 40)
    (data_at,) = struct.unpack_from("<Q", library, table_at + 2 * 64 + 24)  # of .hipFatBinSegment
    table = library[table_at:]
    library += random.Random(4).randbytes(70 * BLOCK)
    # of what is loaded, data are the last segment, and begin with the wrappers
    end = len(library)
    struct.pack_into("<QQQQ", library, 64 + 8, data_at, 0x10000 + data_at, 0, end - data_at)
    struct.pack_into("<Q", library, 40, end)
    wheel = write_wheel(tmp_path / "x.whl", {"x.so": bytes(library + table)})
    (found,) = inspect(wheel).libraries
    assert (found.wrappers, [one.target_id for one in found.targets]) == (1, ["gfx1151"])
    assert passes == []


def test_a_file_made_of_beginnings_of_code_does_not_fill_the_memory() -> None:
    data = b"CCOB\1\0\0\0" * (PLACE_LIMIT + BLOCK)
    packed = zlib.compress(data, wbits=-15)
    source = Inflated(MemorySource(packed), len(data), zlib.crc32(data), "x.so")
    with pytest.raises(CheckError, match="more than 200,000 places"):
        source.read_at(len(data) - 1, 1)
    assert len(source._passing.found) < PLACE_LIMIT + BLOCK
