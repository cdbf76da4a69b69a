"""What clang compiles for many targets, read by rocwright and by LLVM's own tools."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from rocwright.wheels.codeobjects import check_targets, code_objects
from rocwright.wheels.fatbin import FatBinary, fat_binary
from rocwright.wheels.source import FileSource
from tests.wheels.hip_compiler import compile_library

pytestmark = pytest.mark.real

TARGETS = ("gfx1103", "gfx1151", "gfx803", "gfx90a:xnack+")
UNITS = (("add", "scale"), ("other",))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_library(tmp_path_factory.mktemp("plain"), TARGETS, units=UNITS)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_library(tmp_path_factory.mktemp("packed"), TARGETS, units=UNITS, compress=True)


def read(path: Path) -> FatBinary:
    found = fat_binary(FileSource(path))
    assert found is not None
    return found


@pytest.mark.parametrize("which", ["library", "packed"])
def test_every_wrapper_leads_to_a_bundle(which: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(which)
    found = read(path)
    assert [one.bundle for one in found.wrappers] == [one.offset for one in found.bundles]
    assert found.unreached == ()
    assert len(found.bundles) == 2


@pytest.mark.parametrize("which", ["library", "packed"])
def test_the_loader_sees_the_bundles_where_we_do(which: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(which)
    content = path.read_bytes()
    loaded = ctypes.CDLL(str(path))
    loaded.registered_bundle.restype = ctypes.c_void_p
    found = read(path)
    assert loaded.registered_count() == len(found.bundles)
    for index, bundle in enumerate(found.bundles):
        begin = ctypes.string_at(loaded.registered_bundle(index), bundle.size)
        assert begin == content[bundle.offset : bundle.end]


def test_compressed_code_is_the_same_as_plain(library: Path, packed: Path) -> None:
    assert code_objects(packed, hashes=True) == code_objects(library, hashes=True)
    assert check_targets(packed, TARGETS) == []
    assert {one.compression for one in read(packed).bundles} == {"zstd"}
