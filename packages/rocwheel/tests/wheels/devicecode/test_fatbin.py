from __future__ import annotations

import struct
from pathlib import Path

import pytest

from rocbase.errors import CheckError
from rocwheel.wheels import elf
from rocwheel.wheels.devicecode.fatbin import FatBinary, fat_binary
from rocwheel.wheels.source import MemorySource
from rocwheel_samples.fatbin import entry_id, fatbin, gpu_elf, host_elf, linked_elf, pe_file, plain_bundle
from rocwheel_samples.tables import each

BASE = 0x180000000
BUNDLES = fatbin([plain_bundle([(entry_id("gfx803"), gpu_elf(0x2A))]), plain_bundle([])])


def wrapper(address: int, magic: int = 0x48495046) -> bytes:
    return struct.pack("<IIQQ", magic, 1, address, 0)


def read(content: bytes) -> FatBinary:
    found = fat_binary(MemorySource(content))
    assert found is not None
    return found


@each("form", ["rela", "relr", "place"])
def test_a_wrapper_leads_to_its_bundle_however_its_pointer_is_made(form: str) -> None:
    bundles = [
        plain_bundle([(entry_id("gfx803"), gpu_elf(0x2A, body=bytes(number)))]) for number in (9, 5000, 1)
    ]
    content = linked_elf(bundles, form=form)
    found = read(content)
    assert [one.bundle for one in found.wrappers] == [one.offset for one in found.bundles]
    for one in found.wrappers:
        assert one.pointer is not None
        assert (one.pointer.form, one.pointer.at) == (form, one.offset + 8)
        assert content[one.pointer.value_at :][:8] == one.pointer.value.to_bytes(8, "little")
        assert one.pointer.value - 0x10000 == one.bundle


def test_more_relocations_than_any_library_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elf, "MOST_RELOCATIONS", 2)
    bundles = [plain_bundle([])] * 3
    with pytest.raises(CheckError, match="relocations"):
        read(linked_elf(bundles))


def dll(wrappers: bytes, bundles: bytes = BUNDLES) -> bytes:
    return pe_file({b".text": b"code", b".hipFatB": wrappers, b".hip_fat": bundles})


def test_a_dll_has_its_bundles_in_a_section_of_a_short_name_and_wrappers_that_lead_there() -> None:
    second = BUNDLES.index(b"__CLANG", 1)
    found = read(dll(wrapper(BASE + 0x3000) + wrapper(BASE + 0x3000 + second)))
    assert [one.target for bundle in found.bundles for one in bundle.code] == ["gfx803"]
    assert [one.bundle for one in found.wrappers] == [one.offset for one in found.bundles]
    assert [one.pointer and one.pointer.form for one in found.wrappers] == ["place", "place"]
    assert found.unreached == ()


def test_a_bundle_that_no_wrapper_leads_to_is_told() -> None:
    found = read(dll(wrapper(BASE + 0x3000)))
    assert [one.offset for one in found.unreached] == [found.bundles[1].offset]


def test_a_wrapper_that_leads_out_of_the_file_leads_nowhere() -> None:
    (one,) = read(dll(wrapper(0x1234))).wrappers
    assert one.bundle is None


def test_a_wrapper_that_does_not_begin_as_one_is_refused() -> None:
    with pytest.raises(CheckError, match="begins with"):
        read(dll(wrapper(BASE, magic=7)))


@each("content", [b"MZ", b"MZ" + bytes(62), b"MZ" + b"\xff" * 62, pe_file({}, magic=0x10B)])
def test_what_only_begins_like_a_dll_holds_no_code(content: bytes) -> None:
    assert fat_binary(MemorySource(content)) is None


def test_a_dll_whose_section_lies_outside_is_refused() -> None:
    with pytest.raises(CheckError, match="ends at byte"):
        read(dll(b"")[:-512])


def test_a_bundle_of_other_toolchains_is_listed_by_its_names() -> None:
    code = {"hcc-amdgcn-amd-amdhsa--gfx803": gpu_elf(0x2A), "hip-amdgcn-amd-amdhsa-gfx906": gpu_elf(0x2F)}
    found = read(plain_bundle([*code.items()]))
    assert [one.target for one in found.bundles[0].code] == ["gfx803", "gfx906"]


def test_a_bundle_of_code_object_version_2_is_refused() -> None:
    with pytest.raises(CheckError, match="code object version 2"):
        read(plain_bundle([("hip-amdgcn-amd-amdhsa--gfx803", gpu_elf(0, abi=0))]))


def test_a_big_endian_or_narrow_library_holds_no_code(tmp_path: Path) -> None:
    content = bytearray(host_elf(BUNDLES))
    content[4] = 1
    assert fat_binary(MemorySource(bytes(content))) is None


def test_an_empty_entry_of_the_host_lies_in_its_bundle_or_at_the_next_page() -> None:
    bundle = plain_bundle([])
    (there,) = read(host_elf(bundle)).bundles[0].entries
    assert there.size == 0
    at = bundle.index(there.offset.to_bytes(8, "little"), 32)
    for offset, sound in ((4096, True), (1 << 62, False), (0xC500000000000000, False)):
        changed = host_elf(bundle[:at] + offset.to_bytes(8, "little") + bundle[at + 8 :])
        if sound:
            assert read(changed).bundles[0].entries[0].offset == offset
            continue
        with pytest.raises(CheckError, match="lies outside its bundle"):
            read(changed)
