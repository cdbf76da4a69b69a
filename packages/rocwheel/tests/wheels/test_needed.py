"""What ELF libraries need, on libraries compiled here and on damaged ones."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocbase.errors import CheckError
from rocwheel.wheels.elf import Elf
from rocwheel.wheels.needed import (
    LibrarySearch,
    Linkage,
    NeededLibrary,
    closure,
    inside_folders,
    linkage_of,
    of_system,
    origin_folders,
)
from rocwheel.wheels.source import MemorySource
from rocwheel_samples.fake_rocm import compile_library
from rocwheel_samples.tables import each


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a needs b, b needs c in a folder that only b names."""
    folder = tmp_path_factory.mktemp("libraries")
    c = compile_library(folder / "deep" / "libc_.so.3", "int c(void) { return 3; }", soname="libc_.so.3")
    b = compile_library(
        folder / "libb.so.2",
        "int c(void); int b(void) { return c(); }",
        soname="libb.so.2",
        needs=(c,),
        flags=("-Wl,-rpath,$ORIGIN/deep",),
    )
    compile_library(
        folder / "liba.so",
        'int b(void); int puts(const char *); int a(void) { puts(""); return b(); }',
        needs=(b,),
        flags=(f"-Wl,-rpath-link,{c.parent}", "-Wl,--disable-new-dtags,-rpath,/opt/rocm/lib:$ORIGIN"),
    )
    return folder


def test_a_library_says_its_name_what_it_needs_and_where_it_looks(libraries: Path) -> None:
    a, b = linkage_of(libraries / "liba.so"), linkage_of(libraries / "libb.so.2")
    assert a is not None
    assert b is not None
    assert (a.soname, a.rpath, a.runpath) == ("", ("/opt/rocm/lib", "$ORIGIN"), ())
    assert (b.soname, b.needed[0], b.search_path) == ("libb.so.2", "libc_.so.3", ("$ORIGIN/deep",))
    assert "libb.so.2" in a.needed
    assert any(version.startswith("GLIBC_") for version in a.versions["libc.so.6"])
    assert a.machine == b.machine


def test_a_search_path_may_be_as_long_as_bazel_makes_it(tmp_path: Path) -> None:
    folders = tuple(f"$ORIGIN/../../_solib_x86_64/_U_Alocal_Uconfig_{number:04}" for number in range(200))
    flags = (f"-Wl,--enable-new-dtags,-rpath,{':'.join(folders)}",)
    found = linkage_of(compile_library(tmp_path / "liba.so", "int a(void) { return 1; }", flags=flags))
    assert found is not None
    assert len(":".join(folders)) > 4096
    assert found.runpath == folders


def test_more_folders_than_a_search_path_has_are_refused(tmp_path: Path) -> None:
    path = compile_library(tmp_path / "liba.so", "int a(void) { return 1; }", flags=("-Wl,-rpath,/opt/x",))
    names = b"\0" + b":" * 70_000 + b"\0"
    path.write_bytes(with_strings(path.read_bytes(), names, [(29, 1)]))
    with pytest.raises(CheckError, match="more than 65,536 folders"):
        linkage_of(path)


def test_names_that_share_their_bytes_a_thousand_times_are_refused_at_once(tmp_path: Path) -> None:
    path = compile_library(tmp_path / "liba.so", "int a(void) { return 1; }")
    names = b"\0" + b"n" * 1_000_000 + b"\0"
    needed = [(1, at) for at in range(1, 50_000)]
    path.write_bytes(with_strings(path.read_bytes(), names, needed))
    with pytest.raises(CheckError, match="dynamic strings overlap"):
        linkage_of(path)


def with_strings(content: bytes, names: bytes, entries: list[tuple[int, int]]) -> bytes:
    """The library with another dynamic section behind its end: these strings, and what names them."""
    elf = Elf(MemorySource(content))
    at = len(content) + -len(content) % 4096
    base = max(one.address + one.memory_size for one in elf.segments) + 4095 & ~4095
    dynamic = b"".join(struct.pack("<qQ", *one) for one in [(5, base), (10, len(names)), *entries, (0, 0)])
    size = len(names) + -len(names) % 16 + len(dynamic)
    dynamic_at = at + len(names) + -len(names) % 16
    whole = bytearray(content.ljust(at, b"\0") + names.ljust(dynamic_at - at, b"\0") + dynamic)
    table, count = struct.unpack_from("<Q", whole, 32)[0], struct.unpack_from("<H", whole, 56)[0]
    for number in range(count):
        row = table + 56 * number
        kind = struct.unpack_from("<I", whole, row)[0]
        if kind == 2:
            struct.pack_into("<QQQQQ", whole, row + 8, dynamic_at, base, base, len(dynamic), len(dynamic))
        elif kind not in (1, 2):
            # one that is not needed to read it becomes the one that loads what was added
            struct.pack_into("<IIQQQQQQ", whole, row, 1, 6, at, base, base, size, size, 4096)
    return bytes(whole)


def test_what_is_no_elf_file_or_an_object_file_needs_nothing(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    assert linkage_of(tmp_path / "text") is None


def test_the_closure_follows_each_librarys_own_folders(libraries: Path) -> None:
    a = linkage_of(libraries / "liba.so")
    assert a is not None
    told = closure({"liba.so": a}, LibrarySearch([libraries]), stays=lambda name: False)
    assert {name: one.path.name for name, one in told.libraries.items()} == {
        "libb.so.2": "libb.so.2",
        "libc_.so.3": "libc_.so.3",
    }
    assert told.wanted_by["libc_.so.3"] == ("libb.so.2",)
    assert told.missing == ()


def test_what_is_not_there_is_missing_and_what_stays_is_not_followed(libraries: Path) -> None:
    a = linkage_of(libraries / "liba.so")
    assert a is not None
    told = closure({"liba.so": a}, LibrarySearch([]), stays=lambda name: False)
    assert told.missing == ("libb.so.2",)
    told = closure({"liba.so": a}, LibrarySearch([libraries]), stays=lambda name: name == "libb.so.2")
    assert (dict(told.libraries), told.missing) == ({}, ())


def test_a_path_in_the_place_of_a_name_leads_nowhere(libraries: Path) -> None:
    hostile = Linkage(needed=(f"{libraries}/libb.so.2", "../libb.so.2"), machine=62)
    told = closure({"x": hostile}, LibrarySearch([libraries / "deep", libraries]), stays=lambda name: False)
    assert (dict(told.libraries), len(told.missing)) == ({}, 2)
    named = NeededLibrary(name="x", path=Path("/a/libx.so"), linkage=Linkage(soname="../../etc/x"))
    assert named.file_name == "libx.so"


def test_a_library_for_another_machine_is_passed_over(libraries: Path, tmp_path: Path) -> None:
    other = bytearray((libraries / "libb.so.2").read_bytes())
    other[18:20] = (183).to_bytes(2, "little")
    (tmp_path / "libb.so.2").write_bytes(other)
    a = linkage_of(libraries / "liba.so")
    assert a is not None
    told = closure({"liba.so": a}, LibrarySearch([tmp_path, libraries]), stays=lambda name: False)
    assert told.libraries["libb.so.2"].path == libraries / "libb.so.2"


def test_the_policys_libraries_and_the_dynamic_linker_are_the_systems() -> None:
    assert all(map(of_system, ("libc.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2")))
    assert not any(map(of_system, ("libnuma.so.1", "libamdhip64.so.6", "libdrm.so.2")))


@each(
    ("folder", "found"),
    [
        ("$ORIGIN", ["a/b"]),
        ("${ORIGIN}/../lib", ["a/lib"]),
        ("$ORIGIN/../..", [""]),
        ("$ORIGIN/../../../a", []),
        ("$ORIGINAL/x", []),
        ("/opt/rocm/lib", []),
        ("lib", []),
        ("$ORIGIN/$LIB", []),
    ],
)
def test_folders_of_an_rpath_that_lie_in_the_wheel(folder: str, found: list[str]) -> None:
    assert list(inside_folders([folder], "a/b/lib.so")) == found


def test_origin_is_the_librarys_folder(tmp_path: Path) -> None:
    assert origin_folders(["$ORIGIN/x", "/y", "z", "$LIB"], tmp_path) == (tmp_path / "x", Path("/y"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 5000), data=st.binary(min_size=1, max_size=8), end=st.none() | st.integers(0, 20000))
def test_a_damaged_library_is_refused_or_read_never_more(
    libraries: Path, tmp_path: Path, at: int, data: bytes, end: int | None
) -> None:
    damaged = bytearray((libraries / "liba.so").read_bytes())
    damaged[at : at + len(data)] = data
    path = tmp_path / "damaged.so"
    path.write_bytes(damaged[:end])
    try:
        linkage_of(path)
    except CheckError as error:
        assert error.next_step
