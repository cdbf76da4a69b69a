"""kpack archives: what they hold, and what is refused of them, in bounded memory and time."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import msgpack
import pytest
import zstandard

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode import kpack
from rocwheel.wheels.devicecode.code_objects import code_objects, read_code
from rocwheel.wheels.devicecode.kpack_writer import KpackCode, archive
from rocwheel.wheels.parts import pieces
from rocwheel.wheels.scratch import scratch
from rocwheel.wheels.source import MemorySource
from rocwheel_samples import kpack as made
from rocwheel_samples.fatbin import gpu_elf
from rocwheel_samples.hostile_files import soon
from rocwheel_samples.tables import each

NAMES = ("lib/x.so#0", "lib/x.so#1")
TWO = made.code_for("gfx1151", *NAMES) | made.code_for("gfx1100", *NAMES)
SCHEMES = ("none", "zstd-per-kernel")


def read(data: bytes, *, heads: bool = False) -> kpack.Archive:
    return kpack.read_archive(MemorySource(data, subject="x.kpack"), heads=heads)


def refused(data: bytes, *, heads: bool = False) -> str:
    with soon(10), pytest.raises(CheckError) as caught:
        read(data, heads=heads)
    assert caught.value.cause and caught.value.next_step and caught.value.subject.startswith("x.kpack")
    return caught.value.message


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("heads", [False, True])
def test_an_archive_tells_its_code_by_library_and_target(scheme: str, heads: bool) -> None:
    found = read(made.kpack(TWO, scheme=scheme), heads=heads)
    assert (found.group, found.scheme, found.targets) == ("x", scheme, ("gfx1100", "gfx1151"))
    assert {(one.name, one.target_id) for one in found.code} == set(TWO)
    assert all(one.header and one.header.target == one.target for one in found.code)
    assert [one.target for one in found.by_name[NAMES[1]]] == ["gfx1151", "gfx1100"]


@each("scheme", SCHEMES)
def test_the_code_comes_out_as_it_went_in(scheme: str) -> None:
    data = MemorySource(made.kpack(TWO, scheme=scheme))
    found = kpack.read_archive(data)
    assert {(one.name, one.target_id): code for one, code in kpack.contents(data, found)} == TWO


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_our_writer_makes_is_read_again(tmp_path: Path, scheme: kpack.Scheme) -> None:
    code = [
        KpackCode(name=name, target_id=target, content=MemorySource(data))
        for (name, target), data in TWO.items()
    ]
    with scratch(tmp_path) as results:
        data = b"".join(pieces(archive(code, "x", results, scheme)))
        again = b"".join(pieces(archive(code, "x", results, scheme)))
    assert data == again
    held = MemorySource(data)
    found = kpack.read_archive(held)
    assert {(one.name, one.target_id): content for one, content in kpack.contents(held, found)} == TWO
    # apart from our reader: the table is where the header says, and is all that is there
    magic, version, table_at = struct.unpack_from("<4sIQ", data)
    told = msgpack.unpackb(data[table_at:])
    assert (magic, version, told["format_version"]) == (b"KPAK", 1, 1)
    assert told["toc"][NAMES[0]]["gfx1151"]["original_size"] == len(TWO[NAMES[0], "gfx1151"])


def test_code_objects_of_an_archive_name_their_library(tmp_path: Path) -> None:
    path = tmp_path / "x_gfx1151.kpack"
    path.write_bytes(made.kpack(made.code_for("gfx1151", *NAMES)))
    assert [(one.library, one.index, one.target) for one in code_objects(path)] == [
        (NAMES[0], 0, "gfx1151"),
        (NAMES[1], 1, "gfx1151"),
    ]
    assert [code for _, code in read_code(path, lambda one: one.library == NAMES[1])] == [
        TWO[NAMES[1], "gfx1151"]
    ]


def test_features_are_put_in_order() -> None:
    code = gpu_elf(0x3F | 0xC00 | 0x200)
    found = read(made.kpack({("a#0", "gfx90a:xnack-:sramecc+"): code}))
    assert found.targets == ("gfx90a:sramecc+:xnack-",)
    assert found.code[0].features == ("sramecc+", "xnack-")


def table(**changed: Any) -> bytes:
    return made.kpack(TWO, changed=changed)


ROW = {"type": "hsaco", "ordinal": 0, "original_size": 68}
BOMB = b"\x92" * 1000 + b"\x90" * 1001
DEEP = b"\x91" * 5000 + b"\x90"

REFUSED = {
    "another magic number": (b"KPACK" + bytes(100), "not start with its magic"),
    "a header alone": (b"KPAK\1\0\0\0", "shorter than its header"),
    "a newer version": (made.kpack(TWO, version=2), "version 2; known is 1"),
    "a newer table": (table(format_version=7), "version 7; known is 1"),
    "another compression": (table(compression_scheme="brotli"), "'brotli'"),
    "a table behind the file": (made.kpack(TWO, table_at=1 << 40), "its table begins at byte"),
    "a table in the header": (made.kpack(TWO, table_at=4), "its table begins at byte 4"),
    "a table among the code": (made.kpack(TWO, table_at=64), "its table: "),
    "no table": (made.kpack(TWO, table=b"\x93\1\2\3"), "its table: the whole cannot be read"),
    "a table cut short": (made.kpack(TWO)[:-9], "its table: "),
    "2^32 entries": (made.kpack(TWO, table=b"\xdf\xff\xff\xff\xff"), "claims 4,294,967,295 items"),
    "2^32 names": (
        made.kpack(TWO, table=b"\x81" + msgpack.packb("toc") + b"\xdf\xff\xff\xff\xff"),
        "toc claims 4,294,967,295 items",
    ),
    "a name of 4 GiB": (made.kpack(TWO, table=b"\x81\xdb\xff\xff\xff\xff"), "its table: "),
    "lists in lists where a name should be": (
        made.kpack(TWO, table=b"\x81" + BOMB + b"\1"),
        "a key of the whole is a list or map",
    ),
    "lists deeper than any stack": (
        made.kpack(TWO, table=b"\x81" + msgpack.packb("more") + DEEP),
        "more cannot be read",
    ),
    "a name that climbs": (table(toc={"../../lib/x.so#0": {"gfx1151": ROW}}), "leads out of the folder"),
    "a name from the root": (table(toc={"/lib/x.so#0": {"gfx1151": ROW}}), "leads out of the folder"),
    "a name with a control character": (table(toc={"a\x1b[2J": {"gfx1151": ROW}}), "not a printable text"),
    "a target that is none": (table(toc={"a#0": {"../gfx1151": ROW}}), "not a GPU target"),
    "a list of targets that are none": (table(gfx_arches=["gfx1151", "a b"]), "not a GPU target"),
    "an ordinal that is not there": (table(toc={"a#0": {"gfx1151": ROW | {"ordinal": 4}}}), "4 of 4"),
    "a negative ordinal": (table(toc={"a#0": {"gfx1151": ROW | {"ordinal": -1}}}), "not a count"),
    "no ordinal": (table(toc={"a#0": {"gfx1151": {"type": "hsaco"}}}), "has no ordinal"),
    "no size": (table(toc={"a#0": {"gfx1151": {"ordinal": 0}}}), "the size of a#0 for gfx1151"),
    "a size too small": (
        table(toc={"a#0": {"gfx1151": ROW | {"original_size": 65}}}),
        "does not decompress to 65 bytes",
    ),
    "a size of 2^63": (
        table(toc={"a#0": {"gfx1151": ROW | {"original_size": 1 << 63}}}),
        "does not decompress to",
    ),
    "two sizes of one code object": (
        table(toc={"a#0": {"gfx1151": ROW}, "b#0": {"gfx1151": ROW | {"original_size": 70}}}),
        "has two sizes",
    ),
    "code of another target": (
        table(toc={"a#0": {"gfx1100": ROW | {"original_size": len(TWO[NAMES[0], "gfx1151"])}}}),
        "a#0 for gfx1100 is code for gfx1151",
    ),
    "frames behind the table": (table(zstd_size=1 << 40), "the table at"),
    "frames in the header": (table(zstd_offset=0), "its code lies at bytes 0"),
    "blobs that overlap": (
        made.kpack(TWO, scheme="none", changed={"blobs": [{"offset": 64, "size": 74}] * 4}),
        "two code objects overlap at byte 64",
    ),
    "a blob over the table": (
        made.kpack(TWO, scheme="none", changed={"blobs": [{"offset": 64, "size": 100_000}]}),
        "",
    ),
    "an entry that is an archive itself": (
        made.kpack({("a#0", "gfx1151"): made.kpack(TWO)}),
        "it does not start with an ELF header",
    ),
}


@each("what", REFUSED)
def test_a_damaged_archive_is_refused_with_the_reason(what: str) -> None:
    data, reason = REFUSED[what]
    assert reason in refused(data)


def test_a_frame_longer_than_all_of_them_is_refused() -> None:
    data = bytearray(made.kpack(TWO))
    data[68:72] = b"\xff\xff\xff\xff"
    assert "ends behind all of them" in refused(bytes(data))
    data[64:68] = b"\xff\xff\xff\xff"
    assert "claims 4,294,967,295 code objects" in refused(bytes(data))


def bomb(size: int) -> bytes:
    """An archive whose code begins as it should, and unpacks to so many bytes."""
    packer = zstandard.ZstdCompressor(level=1).compressobj(size=size)
    frame = packer.compress(gpu_elf(0x4A))
    written, piece = len(gpu_elf(0x4A)), bytes(1 << 24)
    while written < size:
        piece = piece[: size - written]
        frame += packer.compress(piece)
        written += len(piece)
    frame += packer.flush()
    body = struct.pack("<II", 1, len(frame)) + frame
    told = {
        "compression_scheme": "zstd-per-kernel",
        "zstd_offset": 64,
        "zstd_size": len(body),
        "gfx_arches": ["gfx1151"],
        "toc": {"a#0": {"gfx1151": {"ordinal": 0, "original_size": size}}},
    }
    header = struct.pack("<4sIQ", b"KPAK", 1, 64 + len(body)).ljust(64, b"\0")
    return header + body + bytes(msgpack.packb(told))


def test_a_bomb_is_refused_where_all_is_unpacked_and_not_unpacked_for_its_target() -> None:
    data = bomb(8 << 30)
    assert "far more work" in refused(data)
    with soon(10):
        assert read(data, heads=True).targets == ("gfx1151",)
