from __future__ import annotations

from collections import Counter

import pytest

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode.gpu import gpu_header, machines
from rocwheel_samples.fatbin import gpu_elf
from rocwheel_samples.tables import each


@each(("mach", "name"), sorted(machines().items()))
def test_every_machine_of_the_catalog_is_read_from_e_flags(mach: int, name: str) -> None:
    header = gpu_header(gpu_elf(mach), "x")
    assert (header.target, header.features, header.abi) == (name, (), 4)


def test_no_two_machines_share_a_value_or_a_name() -> None:
    assert max(Counter(machines().values()).values()) == 1
    assert all(0x20 <= mach <= 0xFF for mach in machines())


@each(
    ("name", "mach"),
    [("gfx803", 0x2A), ("gfx900", 0x2C), ("gfx1103", 0x44), ("gfx1151", 0x4A), ("gfx9-4-generic", 0x5F)],
)
def test_known_machines_have_the_values_of_llvm(name: str, mach: int) -> None:
    assert machines()[mach] == name


@each(
    ("bits", "features"),
    [
        (0x000, ()),
        (0x100, ()),
        (0x200, ("xnack-",)),
        (0x300, ("xnack+",)),
        (0x800, ("sramecc-",)),
        (0xC00, ("sramecc+",)),
        (0xE00, ("sramecc+", "xnack-")),
    ],
)
def test_features_of_code_object_version_4_are_off_on_or_open(bits: int, features: tuple[str, ...]) -> None:
    assert gpu_header(gpu_elf(0x3F | bits), "x").features == features


def test_features_of_code_object_version_3_are_only_ever_on() -> None:
    assert gpu_header(gpu_elf(0x2F | 0x300, abi=1), "x").features == ("sramecc+", "xnack+")
    assert gpu_header(gpu_elf(0x2F, abi=1), "x").features == ()


def test_a_generic_target_has_its_version() -> None:
    header = gpu_header(gpu_elf(0x54 | 3 << 24, abi=4), "x")
    assert (header.target, header.generic_version, header.abi) == ("gfx11-generic", 3, 6)


@each(
    ("content", "says"),
    [
        (b"", "ELF header"),
        (gpu_elf(0x2A)[:63], "ELF header"),
        (gpu_elf(0x2A, machine=62), "machine 62"),
        (gpu_elf(0x2A, osabi=65), "OS ABI is 65"),
        (gpu_elf(0x2A, abi=0), "version 2"),
        (gpu_elf(0xFE), "0x0fe"),
    ],
)
def test_what_is_no_gpu_header_is_named_in_the_error(content: bytes, says: str) -> None:
    with pytest.raises(CheckError, match=says):
        gpu_header(content, "x")
