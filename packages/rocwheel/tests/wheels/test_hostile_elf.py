"""ELF files that claim far more than they have: refused, in bounded memory and time."""

from __future__ import annotations

import struct

import pytest

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode import fatbin
from rocwheel.wheels.elf import Elf
from rocwheel.wheels.source import MemorySource
from rocwheel_samples.fatbin import entry_id, gpu_elf, plain_bundle

SECTION = struct.Struct("<IIQQQQIIQQ")
BASE = 0x10000
RELA, RELR = 4, 19


def elf(rows: list[tuple[bytes, int, bytes]], *, names: bytes | None = None) -> bytes:
    """A shared library of one segment, with sections (name, kind, content); equal contents lie there once."""
    content = bytearray(120)
    placed: dict[bytes, int] = {}
    for _, _, data in rows:
        if data not in placed:
            content.extend(bytes(-len(content) % 16))
            placed[data] = len(content)
            content.extend(data)
    strings = names or b"\0" + b"\0".join(dict.fromkeys(name for name, *_ in rows)) + b"\0"
    names_at = len(content)
    content.extend(strings)
    table_at = len(content)
    content.extend(bytes(64))
    for name, kind, data in rows:
        at = placed[data]
        content.extend(
            SECTION.pack(max(0, strings.find(name)), kind, 2, BASE + at, at, len(data), 0, 0, 8, 0)
        )
    content.extend(SECTION.pack(0, 3, 0, 0, names_at, len(strings), 0, 0, 1, 0))
    count = len(rows) + 2
    # more sections than the header has room for are counted in the first one
    struct.pack_into("<Q", content, table_at + 32, count)
    struct.pack_into("<I", content, table_at + 40, count - 1)
    size = len(content)
    content[64:120] = struct.pack("<IIQQQQQQ", 1, 6, 0, BASE, BASE, size, size, 4096)
    ident = b"\x7fELF" + bytes([2, 1, 1, 0, 0]) + bytes(7)
    content[:64] = ident + struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, table_at, 0, 64, 56, 1, 64, 0, 0xFFFF
    )
    return bytes(content)


BUNDLE = plain_bundle([(entry_id("gfx803"), gpu_elf(0x2A))])
WRAPPER = struct.pack("<IIQQ", 0x48495046, 1, 0, 0)


def read(content: bytes) -> None:
    fatbin.fat_binary(MemorySource(content))


def test_the_rows_of_this_file_make_a_sound_library() -> None:
    sound = elf([(b".hip_fatbin", 1, BUNDLE), (b".hipFatBinSegment", 1, WRAPPER)])
    found = fatbin.fat_binary(MemorySource(sound))
    assert found is not None
    assert (len(found.bundles), len(found.wrappers)) == (1, 1)


def test_one_section_named_a_hundred_thousand_times_is_refused() -> None:
    rows = [(b".hip_fatbin", 1, BUNDLE), *[(b".hipFatBinSegment", 1, WRAPPER)] * 100_000]
    with pytest.raises(CheckError, match="100,000 wrappers"):
        read(elf(rows))


def test_more_pointers_than_a_section_has_room_for_are_refused() -> None:
    library = [(b".hip_fatbin", 1, BUNDLE), (b".hipFatBinSegment", 1, WRAPPER)]
    at = next(
        one.address for one in Elf(MemorySource(elf(library))).sections if one.name == ".hipFatBinSegment"
    )
    rows = struct.pack("<QQq", at + 8, 8, BASE) * 10_000
    with pytest.raises(CheckError, match="more pointers than fit"):
        read(elf([*library, (b".rela.dyn", RELA, rows)]))


def test_packed_relocations_that_come_back_to_one_place_are_refused() -> None:
    library = [(b".hip_fatbin", 1, BUNDLE), (b".hipFatBinSegment", 1, WRAPPER)]
    at = next(
        one.address for one in Elf(MemorySource(elf(library))).sections if one.name == ".hipFatBinSegment"
    )
    packed = struct.pack("<QQ", at, (1 << 64) - 1) * 10_000
    with pytest.raises(CheckError, match="more pointers than fit"):
        read(elf([*library, (b".relr.dyn", RELR, packed)]))


def test_names_that_lie_over_one_another_without_end_are_refused() -> None:
    names = b"\0" + b"".join(b"%04d" % number for number in range(1000)) + b"\0"
    rows = [(names[1 + at % 100 : -1], 1, b"x") for at in range(1000)]
    with pytest.raises(CheckError, match="section names overlap"):
        read(elf(rows, names=names))
