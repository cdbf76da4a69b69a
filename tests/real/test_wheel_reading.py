"""Wheels and packages that others built, read by rocwright, and by the tools that are there for each part."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from tests.real.real_wheels import debian_package, real_wheel

from rocbase.files.atomic import sha256_file
from rocwheel.wheels.devicecode.bundle import Bundle, contents
from rocwheel.wheels.devicecode.code_objects import code_objects, fat_binaries
from rocwheel.wheels.devicecode.fatbin import FatBinary
from rocwheel.wheels.source import ByteSource
from rocwheel_samples.hip_compiler import llvm, run

pytestmark = pytest.mark.real

EIGHT = ("gfx1030", "gfx1100", "gfx1101", "gfx1200", "gfx1201", "gfx908", "gfx90a", "gfx942")


@pytest.fixture(scope="module")
def onnxruntime() -> tuple[ByteSource, FatBinary]:
    ((member, source, found),) = fat_binaries(real_wheel("onnxruntime-rocm", "1.22.2.post3"))
    assert member.path == "onnxruntime/capi/libonnxruntime_providers_rocm.so"
    return source, found


@pytest.fixture(scope="module")
def onnxruntime_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("onnxruntime")
    with zipfile.ZipFile(real_wheel("onnxruntime-rocm", "1.22.2.post3")) as wheel:
        return Path(wheel.extract("onnxruntime/capi/libonnxruntime_providers_rocm.so", folder))


def test_onnxruntime_has_95_plain_bundles_of_eight_targets(onnxruntime: tuple[ByteSource, FatBinary]) -> None:
    _, found = onnxruntime
    assert len(found.bundles) == 95
    assert {tuple(one.target for one in bundle.code) for bundle in found.bundles} == {EIGHT}
    assert {bundle.compression for bundle in found.bundles} == {""}


def test_readelf_sees_the_same_bundles_and_pointers(
    onnxruntime: tuple[ByteSource, FatBinary], onnxruntime_library: Path
) -> None:
    _, found = onnxruntime
    sections = run(llvm("llvm-readelf"), "-SW", onnxruntime_library)
    (begin, size), (wrappers_at, _) = (
        _section(sections, name) for name in (".hip_fatbin", ".hipFatBinSegment")
    )
    assert found.spans == ((begin, size),)
    segment = re.search(r"\.hip_fatbin +PROGBITS +([0-9a-f]+)", sections)
    assert segment is not None
    shift = int(segment[1], 16) - begin
    relocations = run(llvm("llvm-readelf"), "-rW", onnxruntime_library)
    pointed = dict(re.findall(r"^([0-9a-f]+) .*R_X86_64_RELATIVE +([0-9a-f]+)$", relocations, re.MULTILINE))
    told = {int(at, 16) - shift: int(value, 16) - shift for at, value in pointed.items()}
    assert [one.offset for one in found.wrappers] == [wrappers_at + 24 * number for number in range(95)]
    assert [told[one.offset + 8] for one in found.wrappers] == [one.offset for one in found.bundles]
    assert [one.bundle for one in found.wrappers] == [one.offset for one in found.bundles]


def test_the_bundler_lists_and_unbundles_the_same(
    onnxruntime: tuple[ByteSource, FatBinary], tmp_path: Path
) -> None:
    source, found = onnxruntime
    for number, bundle in enumerate((found.bundles[0], found.bundles[-1])):
        path = tmp_path / f"{number}.bundle"
        path.write_bytes(source.read_at(bundle.offset, bundle.size))
        _check_with_bundler(path, source, bundle)


@pytest.mark.nightly
@pytest.mark.parametrize(("rocm", "version"), [("70", 2), ("72", 3)])
def test_compressed_bundles_of_bitsandbytes_hold_what_zstd_and_the_bundler_find(
    tmp_path: Path, rocm: str, version: int
) -> None:
    wheel = fat_binaries(real_wheel("bitsandbytes", "0.50.2"))
    name = f"bitsandbytes/libbitsandbytes_rocm{rocm}.so"
    source, found = next((source, binary) for member, source, binary in wheel if member.path == name)
    assert found.unreached == ()
    assert {(one.compression, one.version) for one in found.bundles} == {("zstd", version)}
    for number, bundle in enumerate(found.bundles):
        path = tmp_path / f"{number}.bundle"
        packed = source.read_at(bundle.offset + bundle.header_size, bundle.size - bundle.header_size)
        path.with_suffix(".zst").write_bytes(packed)
        run("zstd", "-q", "-d", path.with_suffix(".zst"), "-o", path)
        assert path.stat().st_size == bundle.unpacked_size
        _check_with_bundler(path, source, bundle)


def test_a_package_of_debian_is_read_through_both_of_its_archives(tmp_path: Path) -> None:
    package = debian_package("librocfft0")
    ours = code_objects(package, hashes=True)
    (library,) = {one.path for one in ours}
    run("dpkg-deb", "-x", package, tmp_path)
    assert _as_dumped(tmp_path / library) == Counter((one.target_id, one.sha256) for one in ours)
    assert {"gfx803", "gfx1030", "gfx1100"} <= {one.target for one in ours}


def _section(told: str, name: str) -> tuple[int, int]:
    row = re.search(rf" {re.escape(name)} +PROGBITS +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", told)
    assert row is not None
    return int(row[1], 16), int(row[2], 16)


def _check_with_bundler(path: Path, source: ByteSource, bundle: Bundle) -> None:
    """That the plain bundle in `path` has, for LLVM's tool, the entries and code that we see in `bundle`."""
    bundler = llvm("clang-offload-bundler")
    listed = run(bundler, "--list", "--type=o", f"--input={path}").split()
    assert sorted(listed) == sorted(one.id for one in bundle.entries)
    for entry, code in contents(source, bundle):
        out = path.with_suffix(".co")
        run(bundler, "--unbundle", "--type=o", f"--input={path}", f"--targets={entry.id}", f"--output={out}")
        assert out.read_bytes() == code


def _as_dumped(library: Path) -> Counter[tuple[str, str]]:
    """What llvm-objdump extracts beside the library: target and sha256 of each code object.

    Only of plain bundles: of compressed ones LLVM 22 writes bytes of the library at the places of the code.
    """
    run(llvm("llvm-objdump"), "--offloading", library.name, cwd=library.parent)
    found = list(library.parent.glob(f"{library.name}.*hip*"))
    return Counter((path.name.partition("amdhsa--")[2], sha256_file(path)) for path in found)
