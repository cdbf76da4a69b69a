from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocbase.errors import CheckError
from rocwheel.wheels.diff.libraries import read_library
from rocwheel_samples.hip_compiler import llvm, run


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("library")
    (folder / "a.c").write_text("int used(void); int twice(int a) { return a * 2 + used(); }\n")
    options = ("-shared", "-fPIC", "-nostdlib", "-fuse-ld=lld", "-Wl,--build-id")
    run(llvm("clang"), *options, "a.c", "-o", "a.so", cwd=folder)
    return (folder / "a.so").read_bytes()


def test_what_a_loader_sees_is_read(library: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.so"
    path.write_bytes(library)
    found = read_library(path, "a.so")
    assert found.names["symbols that it has"] == ["twice"]
    assert found.names["symbols that it wants"] == ["used"]
    assert found.words["machine"] == "EM_X86_64, flags 0x0"
    assert "GNU_STACK RW" in found.words["segments"]
    assert len(found.words["build id"]) in (16, 40)
    assert ".text" in found.sections


@settings(max_examples=200, deadline=None)
@given(changes=st.lists(st.tuples(st.integers(0, 1 << 16), st.binary(min_size=1, max_size=8)), max_size=5))
def test_a_damaged_library_is_read_or_told(
    library: bytes, changes: list[tuple[int, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = bytearray(library)
    for number, new in changes:
        at = number % len(data)
        data[at : at + len(new)] = new
    path = tmp_path_factory.getbasetemp() / "damaged.so"
    path.write_bytes(data)
    with suppress(CheckError):
        read_library(path, "damaged.so")
