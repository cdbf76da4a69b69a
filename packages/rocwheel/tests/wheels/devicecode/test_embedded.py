"""GPU code in other sections than the compiler's: found, validated, and told by every reader."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from rocbase.errors import CheckError
from rocwheel.wheels.choose import Target
from rocwheel.wheels.devicecode import embedded
from rocwheel.wheels.devicecode.code_objects import check_targets, code_objects, read_code
from rocwheel.wheels.devicecode.fatbin import FatBinary, fat_binary
from rocwheel.wheels.inspection import inspect
from rocwheel.wheels.runs_on import RunsOn, runs_on
from rocwheel.wheels.source import BLOCK, MemorySource
from rocwheel_samples.code_object import code_object
from rocwheel_samples.fatbin import (
    compressed_bundle,
    entry_id,
    fatbin,
    gpu_elf,
    host_elf,
    pe_file,
    plain_bundle,
    write_wheel,
)
from rocwheel_samples.hip_compiler import llvm
from rocwheel_samples.hostile_files import soon
from rocwheel_samples.tables import each

TWO = plain_bundle([(entry_id("gfx1100"), code_object(0x41)), (entry_id("gfx1151"), code_object(0x4A))])
FORMS = {
    "plain": TWO,
    "plain, packed together": plain_bundle([(entry_id("gfx1100"), gpu_elf(0x41))], align=8),
    **{
        f"CCOB {version} {('zlib', 'zstd')[method]}": compressed_bundle(TWO, version=version, method=method)
        for version in (1, 2, 3)
        for method in (0, 1)
    },
}


def host(*pieces: bytes, section: bytes = b".rodata") -> bytes:
    return host_elf(b"".join(pieces), name=section)


def read(data: bytes, *, heads: bool = False) -> FatBinary:
    found = fat_binary(MemorySource(data, subject="x.so"), heads=heads)
    assert found is not None
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("heads", [False, True])
def test_a_bundle_is_found_at_any_place(form: str, heads: bool) -> None:
    for before in (0, 1, 7, 4096 - 3, 4096, 5000):
        found = read(host(b"x" * before, FORMS[form], b"text behind"), heads=heads)
        (one,) = found.embedded
        assert (one.section, one.offset) == (".rodata", 64 + before)
        assert one.bundle is not None and found.bundles == () and found.unread == ()
        assert {entry.target for entry in one.bundle.code} <= {"gfx1100", "gfx1151"} and found.has_code


def test_code_objects_alone_are_found_with_their_length() -> None:
    first, second = code_object(0x41), gpu_elf(0x4A)
    found = read(host(b"abc", first, b"and", second, b"text"))
    assert [(one.code.target if one.code else "", one.offset) for one in found.embedded] == [
        ("gfx1100", 64 + 3),
        ("gfx1151", 64 + 3 + len(first) + 3),
    ]
    assert found.embedded[0].size == len(first)


def test_several_lie_behind_one_another_and_none_is_counted_twice() -> None:
    pieces = [FORMS["plain"], b"abc", FORMS["CCOB 2 zstd"], FORMS["CCOB 3 zlib"], b"  ", FORMS["plain"]]
    found = read(host(*pieces))
    assert len(found.embedded) == 4
    assert [one.offset for one in found.embedded] == sorted(one.offset for one in found.embedded)


def test_code_of_the_compilers_section_is_not_embedded_too() -> None:
    found = read(host_elf(fatbin([TWO, FORMS["CCOB 2 zstd"]])))
    assert len(found.bundles) == 2 and found.embedded == ()


def test_a_dll_is_searched_too() -> None:
    found = read(pe_file({b".text": b"code", b".rdata": b"ab" + TWO}))
    assert [one.section for one in found.embedded] == [".rdata"]


WORDS = {
    "the magic alone": b"__CLANG_OFFLOAD_BUNDLE__",
    "the magic in a text": b"magic __CLANG_OFFLOAD_BUNDLE__ and CCOB of a bundler" + bytes(40),
    "a section's name": b"__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx906" + bytes(40),
    "no entry": b"__CLANG_OFFLOAD_BUNDLE__" + bytes(100),
    "CCOB by chance": b"CCOB\x02\x00\x01\x00" + bytes(range(200)),
    "CCOB that ends": b"CCOB\x02\x00\x01\x00",
    "a part of an ELF header": b"\x7fELF\x02\x01\x01\x40",
    "an ELF header for another machine": gpu_elf(0x41, machine=62),
}


@each("what", WORDS)
def test_the_word_for_code_is_no_code(what: str) -> None:
    assert fat_binary(MemorySource(host(b"some text ", WORDS[what]))) is None


def test_a_bundler_itself_holds_no_code() -> None:
    for tool in ("clang-offload-bundler", "llvm-readelf"):
        assert inspect(Path(llvm(tool)).resolve()).libraries == ()


UNREAD = {
    "a newer compressed form": (b"CCOB\x04\x00\x01\x00" + bytes(60), "version 4 and method 1"),
    "compressed data that are no bundle": (
        compressed_bundle(b"something else entirely, and long enough", version=2, method=1),
        "does not start with its magic number",
    ),
    "a newer method": (b"CCOB\x02\x00\x02\x00" + bytes(60), "version 2 and method 2"),
    "an entry of another kind": (
        plain_bundle([("openmp-amdgcn-amd-amdhsa--gfx1100", gpu_elf(0x41))]),
        "HIP bundles have no entry named 'openmp-",
    ),
    "a bundle that is cut short": (TWO[:-100], "lies outside its bundle"),
    "a compressed one that is cut short": (FORMS["CCOB 2 zstd"][:-20], "claims"),
    "code for an unknown GPU": (gpu_elf(0xFE), "an unknown GPU: EF_AMDGPU_MACH is 0x0fe"),
    "a code object that is cut short": (code_object(0x41)[:-64], "is cut short"),
    "an entry for another GPU": (
        plain_bundle([(entry_id("gfx1100"), gpu_elf(0x4A))]),
        "holds code for gfx1151",
    ),
}


@pytest.mark.parametrize("what", UNREAD)
def test_code_that_cannot_be_read_is_told_and_never_no_code(tmp_path: Path, what: str) -> None:
    data, reason = UNREAD[what]
    library = host(b"ab", data)
    told = read(library).unread[0]
    assert reason in told and ".rodata" in told
    wheel = write_wheel(tmp_path / "x.whl", {"x.so": library})
    unknown = [one for one in runs_on(wheel, Target("gfx1100")) if one.verdict is RunsOn.UNKNOWN]
    assert any(reason in one.reason for one in unknown)
    assert reason in check_targets(wheel, ["gfx1100"])[0]


def test_every_reader_counts_it(tmp_path: Path) -> None:
    lone = code_object(0x36)
    library = host_elf(b"abc" + TWO + b"x" + FORMS["CCOB 3 zstd"] + lone, name=b".rodata")
    wheel = write_wheel(tmp_path / "x.whl", {"x.so": library})
    code = code_objects(wheel)
    assert [(one.target, one.index, one.section) for one in code] == [
        ("gfx1030", None, ".rodata"),
        ("gfx1100", 0, ".rodata"),
        ("gfx1151", 0, ".rodata"),
        ("gfx1100", 1, ".rodata"),
        ("gfx1151", 1, ".rodata"),
    ]
    assert [content for one, content in read_code(wheel) if one.index is None] == [lone]
    assert {one.target_id: one.count for one in inspect(wheel).totals} == {
        "gfx1030": 1,
        "gfx1100": 2,
        "gfx1151": 2,
    }
    (told,) = inspect(wheel).libraries[0].embedded
    assert (told.section, told.bundles, told.code_objects) == (".rodata", 2, 1)


def test_embedded_bundles_are_judged_like_others(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "x.whl", {"x.so": host(TWO)})
    assert [one.verdict for one in runs_on(wheel, Target("gfx1151"))] == [RunsOn.NATIVE]
    assert [one.verdict for one in runs_on(wheel, Target("gfx803"))] == [RunsOn.NO]


def test_of_code_objects_alone_only_those_for_the_gpu_are_a_verdict(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "x.whl", {"x.so": host(code_object(0x41), code_object(0x4A))})
    assert [one.verdict for one in runs_on(wheel, Target("gfx1151"))] == [RunsOn.NATIVE]
    (other,) = runs_on(wheel, Target("gfx803"))
    assert other.verdict is RunsOn.UNKNOWN and "for gfx1100, gfx1151" in other.reason


HEADER = 64
"""Where the section begins in the file."""


def layout(random_: random.Random, size: int) -> tuple[bytes, list[int]]:
    """Bytes with pieces of code at places of all kinds: on pages, between, and over the blocks' ends."""
    data = bytearray(random_.randbytes(size))
    places: list[tuple[int, int]] = []
    at = 0
    while at < size - 40_000:
        at += random_.choice((1, 7, 1000, 4096, BLOCK - 13, BLOCK)) + random_.randrange(3)
        if random_.random() < 0.5:
            at += -(at + HEADER) % 4096
        if random_.random() < 0.5:
            at += -(at + HEADER) % BLOCK - random_.randrange(1, 23)
        piece = random_.choice([*FORMS.values(), code_object(0x41), code_object(0x4A)])
        if not 0 <= at < size - len(piece):
            continue
        if places and at < places[-1][1]:
            continue
        data[at : at + len(piece)] = piece
        places.append((at, at + len(piece)))
    return bytes(data), [begin for begin, _ in places]


@pytest.mark.parametrize("seed", range(6))
def test_what_is_inflated_is_searched_like_what_lies_there(tmp_path: Path, seed: int) -> None:
    content, places = layout(random.Random(seed), 3 * BLOCK + 12_345)
    library = host(content)
    expected = [64 + place for place in places]
    held = fat_binary(MemorySource(library))
    assert held is not None and [one.offset for one in held.embedded] == expected
    wheel = write_wheel(tmp_path / "x.whl", {"x.so": library})
    told = code_objects(wheel, hashes=True)
    (tmp_path / "x.so").write_bytes(library)
    assert told == code_objects(tmp_path / "x.so", hashes=True)


def test_a_bundle_that_claims_to_be_long_hides_nothing(tmp_path: Path) -> None:
    liar = bytearray(plain_bundle([(entry_id("gfx1100"), gpu_elf(0x41))]))
    struct.pack_into("<Q", liar, 32 + 24 + len("host-x86_64-unknown-linux-gnu-") + 8, 1 << 20)
    pages: Sequence[bytes] = (bytes(4096 - 64), bytes(liar).ljust(8192, b"\0"), TWO, bytes(2 << 20))
    library = host(*pages)
    wheel = write_wheel(tmp_path / "x.whl", {"x.so": library})
    found = [one.target for one in code_objects(wheel)]
    (tmp_path / "x.so").write_bytes(library)
    assert found == [one.target for one in code_objects(tmp_path / "x.so")] != []


def test_more_pieces_than_any_file_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "MOST_PIECES", 100)
    with soon(10), pytest.raises(CheckError, match="more than 100 places in it begin like GPU code"):
        read(host(*[gpu_elf(0x41)] * 101))


def test_many_pieces_that_cannot_be_read_are_not_all_told() -> None:
    found = read(host(*[gpu_elf(0xFE)] * 1000))
    assert len(found.unread) == embedded.MOST_UNREAD
