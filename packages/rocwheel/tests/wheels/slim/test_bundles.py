"""Bundles of every form in a library, made smaller: each form as the compilers of its time wrote it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode.bundle import Bundle
from rocwheel.wheels.devicecode.code_objects import code_objects, fat_binaries
from rocwheel.wheels.slim import slim
from rocwheel_samples.fatbin import compressed_bundle, entry_id, gpu_elf, plain_bundle
from rocwheel_samples.hip_compiler import llvm, run
from rocwheel_samples.loading import code_in, embed, registered

MACHINES = {"gfx803": 0x2A, "gfx1103": 0x44, "gfx1151": 0x4A}
SPIRV = b"\x03\x02\x23\x07" + bytes(100)


def code(target: str, unit: int = 0, size: int = 50_000) -> bytes:
    """Something that has a code object's header, and does not compress."""
    return gpu_elf(MACHINES[target], body=hashlib.shake_256(f"{target}{unit}".encode()).digest(size))


def bundle(*targets: str, unit: int = 0, align: int = 4096) -> bytes:
    return plain_bundle([(entry_id(one), code(one, unit)) for one in targets], align=align)


def bundles_in(library: Path) -> tuple[Bundle, ...]:
    ((_, _, found),) = fat_binaries(library)
    return found.bundles


def slimmed(library: Path, *gpus: str, **options: object) -> Path:
    out = library.with_name("small.so")
    slim(library, gpus, out, epoch=0, **options)  # type: ignore[arg-type]
    return out


def digests(library: Path) -> list[tuple[str, str | None]]:
    return [(one.target, one.sha256) for one in code_objects(library, hashes=True)]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("method", [0, 1])
def test_a_compressed_bundle_keeps_its_version_and_method(tmp_path: Path, version: int, method: int) -> None:
    old = [bundle(*MACHINES, unit=unit) for unit in range(2)]
    packed = [compressed_bundle(one, version=version, method=method) for one in old]
    small = slimmed(embed(tmp_path, packed), "gfx1151")
    found = bundles_in(small)
    assert [(one.version, one.compression) for one in found] == [(version, ["zlib", "zstd"][method])] * 2
    assert digests(small) == [
        ("gfx1151", hashlib.sha256(code("gfx1151", unit)).hexdigest()) for unit in range(2)
    ]
    assert (
        small.stat().st_size <= 1.02 * ((tmp_path / "libembedded.so").stat().st_size - 4 * 50_000) + 3 * 4096
    )


@pytest.mark.parametrize("align", [1, 4096])
def test_code_in_a_rebuilt_bundle_is_aligned_as_it_was(tmp_path: Path, align: int) -> None:
    small = slimmed(embed(tmp_path, [bundle(*MACHINES, align=align)]), "gfx1151", "gfx803")
    assert registered(small) == [bundle("gfx803", "gfx1151", align=align)]


def test_a_bundle_that_nothing_known_points_to_stays_at_its_address(tmp_path: Path) -> None:
    library = embed(tmp_path, [bundle(*MACHINES, unit=unit) for unit in range(4)], unreached={2})
    before = bundles_in(library)
    small = slimmed(library, "gfx1103")
    assert [code_in(one) for one in registered(small)] == [
        {entry_id("gfx1103"): code("gfx1103", unit)} for unit in (0, 1, 3)
    ]
    address = {
        path: run("readelf", "-sW", path).partition(" bundle2")[0].split()[-7] for path in (library, small)
    }
    assert address[library] == address[small]
    assert len(bundles_in(small)) == len(before) == 4
    # what lies behind the last one goes; before the one that stays there is nothing but zeros
    assert small.stat().st_size <= library.stat().st_size - 4 * 50_000 + 4 * 4096
    assert small.read_bytes().count(code("gfx803", 0)[64:]) == 0


def test_several_sections_of_bundles_are_each_made_smaller(tmp_path: Path) -> None:
    library = embed(tmp_path, [bundle(*MACHINES, unit=unit) for unit in range(2)])
    text = (tmp_path / "embedded.c").read_text()
    # what a linker script or `ld -r` leaves: two sections of one name, the second writable
    text = text.replace('.hip_fatbin,"a"', '.hip_fatbin2,"aw"', 1)
    (tmp_path / "embedded.c").write_text(text)
    run(
        *(llvm("clang"), "-shared", "-fPIC", "-fuse-ld=lld", tmp_path / "embedded.c", tmp_path / "runtime.c"),
        *("-o", library),
    )
    run(llvm("llvm-objcopy"), "--rename-section", ".hip_fatbin2=.hip_fatbin", library)
    assert len(bundles_in(library)) == 2
    small = slimmed(library, "gfx803")
    assert [list(code_in(one)) for one in registered(small)] == [[entry_id("gfx803")]] * 2
    assert small.stat().st_size <= library.stat().st_size - 4 * 50_000 + 6 * 4096


def test_spirv_stays_for_a_gpu_without_code_of_its_own(tmp_path: Path) -> None:
    spirv = ("hip-spirv64-amd-amdhsa--amdgcnspirv", SPIRV)
    old = plain_bundle([(entry_id("gfx803"), code("gfx803")), spirv])
    other = plain_bundle([(entry_id("gfx1151"), code("gfx1151")), spirv])
    small = slimmed(embed(tmp_path, [old, other]), "gfx1151")
    assert [one.target for one in code_objects(small)] == ["amdgcnspirv", "gfx1151"]


def test_a_pointer_into_the_middle_of_a_bundle_is_an_error(tmp_path: Path) -> None:
    library = embed(tmp_path, [bundle(*MACHINES)])
    with (tmp_path / "embedded.c").open("a") as file:
        file.write("const char *const middle = bundle0 + 8;\n")
    run(
        *(llvm("clang"), "-shared", "-fPIC", "-fuse-ld=lld", tmp_path / "embedded.c", tmp_path / "runtime.c"),
        *("-o", library),
    )
    with pytest.raises(CheckError, match="where no bundle begins"):
        slimmed(library, "gfx1151")
    assert not (tmp_path / "small.so").exists()


def test_a_file_of_bundles_alone_is_made_smaller(tmp_path: Path) -> None:
    file = tmp_path / "transform.hsaco"
    file.write_bytes(bundle(*MACHINES))
    small = slimmed(file, "gfx1151")
    assert code_in(small.read_bytes()) == {entry_id("gfx1151"): code("gfx1151")}
