from __future__ import annotations

import pytest

from rocbase.errors import CheckError
from rocwheel.wheels.elf import Elf
from rocwheel.wheels.source import MemorySource
from rocwheel_samples.fatbin import host_elf


def spans(content: bytes, name: str = ".hip_fatbin") -> list[tuple[int, int]]:
    return [(one.offset, one.size) for one in Elf(MemorySource(content)).named(name)]


def test_sections_are_found_by_name_and_those_without_bytes_left_out() -> None:
    assert spans(host_elf(b"12345")) == [(64, 5)]
    assert spans(host_elf(b"12345", name=b".text")) == []
    assert spans(host_elf(b"12345", kind=8)) == []


def test_a_section_outside_the_file_is_refused() -> None:
    content = bytearray(host_elf(b"12345"))
    at = content.index(b".shstrtab\0") + len(b".shstrtab\0") + 64 + 32
    content[at : at + 8] = (1 << 62).to_bytes(8, "little")
    with pytest.raises(CheckError, match="ends at byte"):
        spans(bytes(content))
