"""Which patchelf is taken."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rocbase.errors import CheckError, InputError
from rocwheel.wheels.needed import linkage_of
from rocwheel.wheels.repair import patchelf
from rocwheel.wheels.repair.alias import alias_library
from rocwheel.wheels.repair.model import Edit
from rocwheel_samples.fake_rocm import compile_library


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    patchelf.patchelf.cache_clear()
    yield
    patchelf.patchelf.cache_clear()


def program(folder: Path, version: str) -> Path:
    folder.mkdir()
    path = folder / "patchelf"
    path.write_text(f"#!/bin/sh\necho patchelf {version}\n")
    path.chmod(0o755)
    return path


def test_a_version_that_damages_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = program(tmp_path / "old", "0.14.3")
    monkeypatch.setenv("PATH", str(old.parent))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere" / "python"))
    with pytest.raises(InputError) as caught:
        patchelf.patchelf()
    assert "0.14.3" in caught.value.cause


def test_the_one_beside_python_stands_before_the_one_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, other = program(tmp_path / "a", "0.18.0"), program(tmp_path / "b", "0.19.0")
    monkeypatch.setenv("PATH", str(other.parent))
    monkeypatch.setattr(sys, "executable", str(beside.parent / "python"))
    assert patchelf.patchelf() == beside


@pytest.mark.parametrize("edit", [{"remove": ("@/dev/zero",)}, {"replace": {"@/etc/hosts": "libd.so"}}])
def test_no_name_in_a_wheel_makes_patchelf_read_a_file(edit: dict[str, Any], tmp_path: Path) -> None:
    path = compile_library(tmp_path / "liba.so.1", "int a;")
    with pytest.raises(CheckError, match="would read files"):
        patchelf.apply(Edit(place="x", rpath=(), **edit), path, tmp_path / "changed")


def test_an_edit_changes_name_needs_and_rpath_at_once(tmp_path: Path) -> None:
    path = compile_library(tmp_path / "liba.so.1", 'int puts(const char *); int a(void) { return puts(""); }')
    edit = Edit(
        place="x", rpath=("$ORIGIN", "$ORIGIN/b"), soname="liba-1.so", replace={"libc.so.6": "libd.so"}
    )
    patchelf.apply(edit, path, tmp_path / "changed")
    found = linkage_of(tmp_path / "changed")
    assert found is not None
    assert (found.soname, found.needed, found.rpath) == ("liba-1.so", ("libd.so",), ("$ORIGIN", "$ORIGIN/b"))
    assert set(found.versions) == {"libd.so"}


def test_what_patchelf_cannot_change_is_an_error_with_its_words(tmp_path: Path) -> None:
    path = tmp_path / "no.so"
    path.write_bytes(b"no ELF file")
    with pytest.raises(CheckError) as caught:
        patchelf.apply(Edit(place="lib/no.so", rpath=()), path, tmp_path / "out")
    assert "lib/no.so" in caught.value.message
    assert caught.value.cause


def test_an_alias_says_its_name_and_the_one_thing_that_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "libx.so"
    path.write_bytes(alias_library("libx.so", "libx.so.6", 62))
    found = linkage_of(path)
    assert found is not None
    assert (found.soname, found.needed, found.rpath, found.machine) == (
        "libx.so",
        ("libx.so.6",),
        ("$ORIGIN",),
        62,
    )
