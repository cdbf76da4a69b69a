from __future__ import annotations

import gzip
import hashlib
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocbase.errors import CheckError, InputError
from rocwheel.wheels import source
from rocwheel.wheels.devicecode.bundle import parse_entry_id
from rocwheel.wheels.devicecode.code_objects import check_targets, code_objects
from rocwheel.wheels.devicecode.gpu import machines
from rocwheel_samples.fatbin import (
    compressed_bundle,
    entry_id,
    fatbin,
    gpu_elf,
    host_elf,
    plain_bundle,
    write_archive,
    write_wheel,
)
from rocwheel_samples.tables import each

THREE = {"gfx803": 0x2A, "gfx1103": 0x44, "gfx1151": 0x4A}
FORMS = ["plain", *((version, method) for version in (1, 2, 3) for method in (0, 1))]

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def bundle_of(*targets: str, form: object = "plain", body: bytes = b"code") -> bytes:
    plain = plain_bundle([(entry_id(target), gpu_elf(THREE[target], body=body)) for target in targets])
    if isinstance(form, tuple):
        return compressed_bundle(plain, version=form[0], method=form[1])
    return plain


def write(folder: Path, content: bytes, name: str = "libx.so") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_bundle_gives_its_code_objects(tmp_path: Path, form: object) -> None:
    bundles = [
        bundle_of("gfx803", "gfx1151", form=form),
        bundle_of("gfx1103", form=form, body=b"other" * 999),
    ]
    found = code_objects(write(tmp_path, host_elf(fatbin(bundles))), hashes=True)
    assert [(one.target, one.index) for one in found] == [("gfx803", 0), ("gfx1151", 0), ("gfx1103", 1)]
    assert found[0].sha256 == hashlib.sha256(gpu_elf(0x2A)).hexdigest()
    assert [one.size for one in found] == [68, 68, 64 + 5 * 999]


def test_a_wheel_is_read_without_being_unpacked(tmp_path: Path) -> None:
    library = host_elf(fatbin([bundle_of(*THREE)]))
    wheel = write_wheel(
        tmp_path / "x-1-py3-none-any.whl",
        {
            "x/lib/libx.so": library,
            "x/kernels/a.hsaco": gpu_elf(0x4A),
            "x/__init__.py": b"",
            "x/b.co": bundle_of("gfx803"),
        },
    )
    found = code_objects(wheel)
    assert {(one.path, one.target_id, one.index) for one in found} == {
        ("x/b.co", "gfx803", 0),
        ("x/kernels/a.hsaco", "gfx1151", None),
        *(("x/lib/libx.so", target, 0) for target in THREE),
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == [wheel.name]


def test_a_large_member_of_a_wheel_is_read_in_two_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = host_elf(fatbin([bundle_of(*THREE, body=bytes(4_000_000))] * 3))
    wheel = write_wheel(tmp_path / "x.whl", {"libx.so": library})
    opened: list[object] = []
    real = zipfile.ZipFile.open

    def noted(archive: zipfile.ZipFile, name: str, *more: Any, **options: Any) -> IO[bytes]:
        opened.append(name)
        return real(archive, name, *more, **options)

    monkeypatch.setattr(zipfile.ZipFile, "open", noted)
    assert len(code_objects(wheel)) == 9
    assert len(opened) <= 1 + 3


def test_an_archive_is_read_in_one_pass_and_names_the_file_within(tmp_path: Path) -> None:
    archive = write_archive(
        tmp_path / "x.tar.gz",
        {
            "./x/obj/long.hip.o": host_elf(fatbin([bundle_of("gfx1103", body=b"other" * 999)])),
            "./x/lib/liba.so": host_elf(b"x", name=b".text"),
            "./x/obj/short.hip.o": host_elf(fatbin([bundle_of("gfx1151")])),
            "./x/README": b"text",
        },
    )
    assert [(one.path, one.target, one.index) for one in code_objects(archive)] == [
        ("x/obj/long.hip.o", "gfx1103", 0),
        ("x/obj/short.hip.o", "gfx1151", 0),
    ]
    assert check_targets(archive, ["gfx1151"]) == [
        "x/obj/long.hip.o: no code for gfx1151 (1 of 1 bundles)",
        "x/obj/long.hip.o: code for gfx1103, which was not asked for (1 of 1 bundles)",
    ]


def test_links_in_an_archive_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("x/lib.so")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert code_objects(path) == []


@pytest.mark.parametrize("content", [b"", b"no gzip at all", gzip.compress(b"no tar" * 999, mtime=0)])
def test_what_is_no_archive_is_a_check_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CheckError, match=r"cannot read x\.tar\.gz as an archive"):
        code_objects(write(tmp_path, content, "x.tar.gz"))


def test_an_archive_that_is_cut_short_is_a_check_error(tmp_path: Path) -> None:
    noise = hashlib.shake_256(b"x").digest(400_000)
    whole = write_archive(
        tmp_path / "x.tar.gz", {"a.so": host_elf(fatbin([bundle_of("gfx803", body=noise)]))}
    )
    whole.write_bytes(whole.read_bytes()[:-200_000])
    with pytest.raises(CheckError):
        code_objects(whole)


def test_an_archive_that_unpacks_without_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "ALLOWANCE", 1024**2)
    path = write_archive(tmp_path / "x.tar.gz", {"a.txt": bytes(64 * 1024**2)})
    with pytest.raises(CheckError, match="far more work"):
        code_objects(path)


def test_a_folder_is_walked_in_order_and_links_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    write(tmp_path / "b", gpu_elf(0x2A), "k.co")
    write(tmp_path, host_elf(fatbin([bundle_of("gfx1103")])), "a.so")
    (tmp_path / "a.so.1").symlink_to("a.so")
    (tmp_path / "b" / "up").symlink_to("..")
    assert [(one.path, one.target) for one in code_objects(tmp_path)] == [
        ("a.so", "gfx1103"),
        ("b/k.co", "gfx803"),
    ]


def test_files_without_gpu_code_have_none(tmp_path: Path) -> None:
    assert code_objects(write(tmp_path, b"")) == []
    assert code_objects(write(tmp_path, b"#!/bin/sh\n")) == []
    assert code_objects(write(tmp_path, host_elf(b"x", name=b".text"))) == []
    assert code_objects(write(tmp_path, host_elf(b""))) == []


def test_what_is_not_there_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        code_objects(tmp_path / "missing.whl")


@each(
    ("name", "expected"),
    [
        ("hipv4-amdgcn-amd-amdhsa--gfx803", ("gfx803", ())),
        ("hip-amdgcn-amd-amdhsa-gfx906", ("gfx906", ())),
        ("hipv4-amdgcn-amd-amdhsa-unknown-gfx1151", ("gfx1151", ())),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-:sramecc+", ("gfx90a", ("sramecc+", "xnack-"))),
        ("hipv4-amdgcn-amd-amdhsa--gfx10-3-generic", ("gfx10-3-generic", ())),
        ("hip-spirv64-amd-amdhsa--amdgcnspirv", ("amdgcnspirv", ())),
        ("host-x86_64-unknown-linux-gnu-", None),
    ],
)
def test_entry_names_of_every_kind_are_understood(name: str, expected: object) -> None:
    assert parse_entry_id(name, "x") == expected


def test_an_entry_of_an_unknown_kind_is_refused_and_not_skipped() -> None:
    with pytest.raises(CheckError, match="openmp"):
        parse_entry_id("openmp-amdgcn-amd-amdhsa--gfx906", "x")


def test_an_entry_whose_code_is_for_another_gpu_is_refused(tmp_path: Path) -> None:
    bundle = plain_bundle([(entry_id("gfx803"), gpu_elf(THREE["gfx1151"]))])
    with pytest.raises(CheckError, match="gfx803 holds code for gfx1151"):
        code_objects(write(tmp_path, host_elf(bundle)))


def test_an_entry_whose_features_differ_is_refused(tmp_path: Path) -> None:
    bundle = plain_bundle([(entry_id("gfx90a:xnack+"), gpu_elf(0x3F | 0x200))])
    with pytest.raises(CheckError, match="gfx90a:xnack-"):
        code_objects(write(tmp_path, host_elf(bundle)))


def test_spirv_is_listed_and_not_taken_for_elf(tmp_path: Path) -> None:
    bundle = plain_bundle([("hip-spirv64-amd-amdhsa--amdgcnspirv", b"\x03\x02\x23\x07")])
    assert [one.target for one in code_objects(write(tmp_path, host_elf(bundle)))] == ["amdgcnspirv"]


def test_exactly_the_wanted_targets_is_no_problem(tmp_path: Path) -> None:
    path = write(tmp_path, host_elf(fatbin([bundle_of(*THREE), bundle_of(*THREE, form=(3, 1))])))
    assert check_targets(path, ["gfx1151", "gfx803", "gfx1103"]) == []


def test_a_missing_and_a_surplus_target_are_told_with_the_share_of_bundles(tmp_path: Path) -> None:
    path = write(tmp_path, host_elf(fatbin([bundle_of(*THREE), bundle_of("gfx803")])))
    assert check_targets(path, ["gfx803", "gfx1151"]) == [
        "libx.so: code for gfx1103, which was not asked for (1 of 2 bundles)",
        "libx.so: no code for gfx1151 (1 of 2 bundles)",
    ]


def test_no_gpu_code_at_all_is_a_problem(tmp_path: Path) -> None:
    assert check_targets(write(tmp_path, b"text"), ["gfx803"]) == [
        "libx.so contains no GPU code; expected: gfx803"
    ]
    assert check_targets(write(tmp_path, b"text"), []) == []


def test_files_of_one_code_object_each_are_checked_together(tmp_path: Path) -> None:
    for target, mach in THREE.items():
        write(tmp_path, gpu_elf(mach), f"{target}.co")
    assert check_targets(tmp_path, list(THREE)) == []
    assert check_targets(tmp_path, [*THREE, "gfx900"]) == [f"{tmp_path.name}: no code for gfx900"]
    assert check_targets(tmp_path, ["gfx803", "gfx1103"]) == [
        "gfx1151.co: code for gfx1151, which was not asked for"
    ]


def test_the_order_of_features_does_not_matter(tmp_path: Path) -> None:
    path = write(tmp_path, gpu_elf(0x3F | 0xE00))
    assert check_targets(path, ["gfx90a:xnack-:sramecc+"]) == []


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "ALLOWANCE", 4 << 20)
    monkeypatch.setattr(source, "MOST_UNPACKED", 4)


def bomb(version: int, method: int) -> bytes:
    """A bundle that is sound but for its size: one code object of 256 MiB of zeros in a few KiB."""
    name = entry_id("gfx803").encode()
    length = 256 << 20
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<QQQQ", 1, 56 + len(name), length, len(name)) + name
    head += gpu_elf(0x2A)
    packer = zlib.compressobj(1) if method == 0 else zstandard.ZstdCompressor().compressobj()
    packed = packer.compress(head) + b"".join(packer.compress(bytes(1 << 20)) for _ in range(64))
    packed += packer.flush()
    layout = {1: "<4sHHIQ", 2: "<4sHHIIQ", 3: "<4sHHQQQ"}[version]
    sizes = [] if version == 1 else [struct.calcsize(layout) + len(packed)]
    return struct.pack(layout, b"CCOB", version, method, *sizes, len(head) - 68 + length, 0) + packed


@pytest.mark.usefixtures("small_budget")
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("method", [0, 1])
def test_a_bundle_that_unpacks_without_end_is_refused(tmp_path: Path, version: int, method: int) -> None:
    with pytest.raises(CheckError, match="more work"):
        code_objects(write(tmp_path, bomb(version, method), "x.co"))


@pytest.mark.usefixtures("small_budget")
def test_a_wheel_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    far = 64 << 20
    header = host_elf(b"")
    member = header[:40] + far.to_bytes(8, "little") + header[48:]
    wheel = write_wheel(tmp_path / "x.whl", {"libx.so": member + bytes(far)})
    with pytest.raises(CheckError, match="more work"):
        code_objects(wheel)


@pytest.mark.usefixtures("small_budget")
def test_section_names_that_never_end_are_refused(tmp_path: Path) -> None:
    content = bytearray(host_elf(b"x" * (8 << 20), name=b"n" * 70_000))
    content[60:62] = (60_000).to_bytes(2, "little")
    with pytest.raises(CheckError):
        code_objects(write(tmp_path, bytes(content)))


def test_a_wheel_cut_short_is_a_check_error(tmp_path: Path) -> None:
    whole = write_wheel(tmp_path / "x.whl", {"libx.so": host_elf(fatbin([bundle_of(*THREE)]))}).read_bytes()
    with pytest.raises(CheckError, match="cannot read"):
        code_objects(write(tmp_path, whole[: len(whole) // 2], "cut.whl"))


@pytest.mark.parametrize(
    "content",
    [
        b"__CLANG_OFFLOAD_BUNDLE__",
        b"__CLANG_OFFLOAD_BUNDLE__" + b"\xff" * 8,
        b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<QQQQ", 1, 0, 8, 1 << 60),
        b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<QQQQ", 1, 1 << 63, 8, 5) + b"hello",
        b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<QQQQ", 1, 0, 8, 31) + entry_id("gfx803").encode(),
        b"CCOB",
        b"CCOB" + struct.pack("<HHIIQ", 9, 1, 24, 1, 0),
        b"CCOB" + struct.pack("<HHIIQ", 2, 7, 24, 1, 0),
        b"CCOB" + struct.pack("<HHIIQ", 2, 1, 3, 1, 0),
        b"CCOB" + struct.pack("<HHIIQ", 2, 1, 24, 1, 0),
        b"CCOB" + struct.pack("<HHQQQ", 3, 0, 1 << 62, 1, 0),
    ],
)
def test_bogus_counts_offsets_and_versions_are_check_errors(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CheckError):
        code_objects(write(tmp_path, content))


def test_two_entries_that_overlap_are_refused(tmp_path: Path) -> None:
    bundle = bytearray(plain_bundle([(entry_id(name), gpu_elf(mach)) for name, mach in THREE.items()]))
    first = bundle.index(entry_id("gfx803").encode()) - 24
    second = bundle.index(entry_id("gfx1103").encode()) - 24
    bundle[second : second + 8] = (int.from_bytes(bundle[first : first + 8], "little") + 1).to_bytes(
        8, "little"
    )
    with pytest.raises(CheckError, match="overlaps"):
        code_objects(write(tmp_path, bytes(bundle)))


def test_a_changed_byte_in_a_compressed_bundle_is_found_by_its_hash(tmp_path: Path) -> None:
    plain = bundle_of("gfx803", body=b"code" * 100)
    good = compressed_bundle(plain, version=2, method=0)
    packed = zlib.compress(plain[:-1] + b"?")
    content = good[:8] + struct.pack("<I", 24 + len(packed)) + good[12:24] + packed
    with pytest.raises(CheckError, match="hash"):
        code_objects(write(tmp_path, content), hashes=True)


def test_bytes_between_bundles_that_are_no_padding_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="neither a bundle nor padding"):
        code_objects(write(tmp_path, host_elf(bundle_of("gfx803") + b"\0\0junk")))


targets = st.lists(
    st.tuples(st.sampled_from(sorted(machines().items())), st.binary(max_size=200)),
    min_size=1,
    max_size=6,
    unique_by=lambda one: one[0],
)


@same_folder
@given(
    bundles=st.lists(targets, min_size=1, max_size=3),
    form=st.sampled_from(FORMS),
    align=st.sampled_from([1, 8, 4096]),
)
def test_what_is_written_is_read_back(
    tmp_path: Path, bundles: list[list[tuple[tuple[int, str], bytes]]], form: object, align: int
) -> None:
    expected, written = [], []
    for index, entries in enumerate(bundles):
        contents = [(entry_id(name), gpu_elf(mach, body=body)) for (mach, name), body in entries]
        plain = plain_bundle(contents, align=align)
        written.append(
            compressed_bundle(plain, version=form[0], method=form[1]) if isinstance(form, tuple) else plain
        )
        expected += [
            (name, index, hashlib.sha256(content).hexdigest())
            for ((_, name), _), (_, content) in zip(entries, contents, strict=True)
        ]
    found = code_objects(write(tmp_path, host_elf(fatbin(written))), hashes=True)
    assert [(one.target, one.index, one.sha256) for one in found] == expected


@settings(same_folder, max_examples=400)
@given(
    form=st.sampled_from(FORMS),
    container=st.sampled_from(["file", "elf", "wheel"]),
    edits=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=9)), max_size=4
    ),
    keep=st.floats(0, 1),
)
def test_no_damage_raises_anything_but_our_errors(
    tmp_path: Path, form: object, container: str, edits: list[tuple[float, bytes]], keep: float
) -> None:
    content = bundle_of(*THREE, form=form)
    if container != "file":
        content = host_elf(fatbin([content, content]))
    if container == "wheel":
        content = write_wheel(tmp_path / "x.whl", {"a/libx.so": content, "a/b.py": b"pass"}).read_bytes()
    damaged = bytearray(content)
    for place, data in edits:
        # Most of a bundle is padding: aim at headers, names and tables as often as anywhere.
        reach = len(damaged) if len(data) % 2 else min(len(damaged), 400)
        at = int(place * reach)
        damaged[at : at + len(data)] = data
    path = write(tmp_path, bytes(damaged[: max(4, int(keep * len(damaged)))]), f"x.{container}")
    try:
        code_objects(path)
    except (CheckError, InputError) as error:
        assert error.message and error.cause and error.next_step


@same_folder
@given(
    st.sampled_from([b"\x7fELF\x02\x01\x01", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB", b"PK\x03\x04"]),
    st.binary(),
)
def test_noise_behind_a_right_beginning_raises_nothing_but_our_errors(
    tmp_path: Path, magic: bytes, noise: bytes
) -> None:
    try:
        code_objects(write(tmp_path, magic + noise))
    except (CheckError, InputError) as error:
        assert error.next_step
