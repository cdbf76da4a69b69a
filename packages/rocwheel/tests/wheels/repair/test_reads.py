"""Files that a library reads, found where ROCm lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocbase.errors import CheckError
from rocwheel.wheels.needed import Linkage, NeededLibrary
from rocwheel.wheels.repair import Request
from rocwheel.wheels.repair.facts import the_facts
from rocwheel.wheels.repair.reads import Gathered, gather
from rocwheel_samples.kpack import code_for, kpack, kpacked_elf


@pytest.fixture
def rocm(tmp_path: Path) -> Path:
    """A library whose code lies in kpack archives for two GPUs."""
    root = tmp_path / "rocm"
    (root / "lib").mkdir(parents=True)
    (root / ".kpack").mkdir()
    for target in ("gfx1100", "gfx1151"):
        (root / f".kpack/x_{target}.kpack").write_bytes(kpack(code_for(target, "lib/libx.so.1#0")))
    (root / ".kpack/y_gfx1151.kpack").write_bytes(b"of another library")
    return root


def gathered(rocm: Path, library: bytes, *targets: str) -> Gathered:
    path = rocm / "lib/libx.so.1"
    path.write_bytes(library)
    linkage = Linkage(needed=(), machine=62)
    one = NeededLibrary(name=path.name, path=path, linkage=linkage)
    return gather([one], Request(targets=targets), the_facts(), "small/_rocm/lib")


def test_the_archives_of_a_library_come_with_it(rocm: Path) -> None:
    found = gathered(rocm, kpacked_elf("lib/libx.so.1"))
    assert [(one.place, one.of) for one in found.data] == [
        (f"small/_rocm/.kpack/x_{target}.kpack", "libx.so.1") for target in ("gfx1100", "gfx1151")
    ]
    assert found.missing == ()


def test_only_archives_for_the_gpus_asked_for_come(rocm: Path) -> None:
    found = gathered(rocm, kpacked_elf("lib/libx.so.1"), "gfx1151")
    assert [one.place for one in found.data] == ["small/_rocm/.kpack/x_gfx1151.kpack"]
    assert list(found.dropped) == ["gfx1100"]


def test_an_archive_that_is_not_there_is_missed(rocm: Path) -> None:
    (lacking,) = gathered(rocm, kpacked_elf("lib/libx.so.1"), "gfx803").missing
    assert lacking.name == "../.kpack/x_*.kpack for gfx803" and lacking.wanted_by == ("libx.so.1",)
    assert "here for gfx1100, gfx1151" in lacking.why


@pytest.mark.parametrize(
    "search", ["/etc/*", "../lib/*", "../**/x.kpack", "..", "../lib", "../.kpack/*.kpack"]
)
def test_a_search_path_brings_no_other_files(rocm: Path, search: str) -> None:
    assert gathered(rocm, kpacked_elf("lib/libx.so.1", [search])).data == ()


def test_a_reference_that_cannot_be_read_is_told(rocm: Path) -> None:
    with pytest.raises(CheckError, match="cannot be read"):
        gathered(rocm, kpacked_elf(told=b"\xc1"))
