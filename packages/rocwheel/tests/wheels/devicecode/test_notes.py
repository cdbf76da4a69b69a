"""Notes as compilers write them, and as nobody should."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocbase.errors import CheckError
from rocwheel.wheels.devicecode.code_object import CodeFile
from rocwheel.wheels.devicecode.notes import notes
from rocwheel_samples.code_object import code_object
from rocwheel_samples.tables import each


def written(owner: bytes, kind: int, content: bytes) -> bytes:
    sizes = struct.pack("<III", len(owner), len(content), kind)
    return sizes + owner + bytes(-len(owner) % 4) + content + bytes(-len(content) % 4)


def read(section: bytes) -> list[tuple[bytes, int, bytes, bool]]:
    return [(one.owner, one.kind, bytes(one.content), one.complete) for one in notes(memoryview(section))]


def test_each_note_has_its_owner_type_and_content() -> None:
    section = written(b"AMD\0", 3, b"12345") + written(b"AMDGPU\0", 32, b"")
    assert read(section) == [(b"AMD\0", 3, b"12345", True), (b"AMDGPU\0", 32, b"", True)]


def test_what_is_shorter_than_a_note_is_none() -> None:
    assert read(b"") == read(bytes(11)) == []
    assert len(read(written(b"A", 1, b"x") + bytes(11))) == 1


@each(
    ("section", "content"),
    [
        (struct.pack("<III", 4, 9, 3) + b"AMD\0" + b"12345678", b"12345678"),
        (struct.pack("<III", 4, 0xFFFFFFFF, 3) + b"AMD\0", b""),
        (struct.pack("<III", 0xFFFFFFFF, 0, 3) + b"AMD\0", b""),
    ],
    ids=["a byte too few", "far too few", "a name without end"],
)
def test_a_note_that_claims_more_than_there_is_is_not_whole(section: bytes, content: bytes) -> None:
    assert read(section) == [(b"AMD\0", 3, content, False)]


@given(st.binary(max_size=200))
def test_any_bytes_are_notes_that_lie_within_them(section: bytes) -> None:
    found = read(section)
    assert len(found) * 12 <= len(section)
    assert all(owner in section and content in section for owner, _, content, _ in found)
    assert all(whole for _, _, _, whole in found[:-1])


def test_a_code_object_whose_note_is_truncated_is_refused() -> None:
    code = code_object()
    at = code.index(b"AMDGPU\0\0") - 8
    with pytest.raises(CheckError, match="a note is truncated"):
        list(CodeFile(code[:at] + struct.pack("<I", 1 << 20) + code[at + 4 :], "x").notes())
