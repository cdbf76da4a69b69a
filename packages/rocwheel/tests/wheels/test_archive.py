from __future__ import annotations

import os
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocbase.errors import CheckError, ExplainedError
from rocwheel.wheels.archive import open_wheel
from rocwheel_samples.wheel_making import FILES, zip_of


def read_all(path: Path) -> dict[str, bytes]:
    with open_wheel(path) as files:
        return {file.path: file.read(file.size) for file in files}


def made(tmp_path: Path, build: Callable[[zipfile.ZipFile], object]) -> Path:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        build(archive)
    return path


def test_files_deflated_and_stored_are_read_with_their_modes(tmp_path: Path) -> None:
    big = os.urandom(3_000_000) + bytes(20_000_000)

    def build(archive: zipfile.ZipFile) -> None:
        archive.writestr("a/", b"")
        archive.writestr("a/big", big)
        archive.writestr("a/stored", b"as it is", zipfile.ZIP_STORED)
        script = zipfile.ZipInfo("a/run")
        script.external_attr = (stat.S_IFREG | 0o755) << 16
        archive.writestr(script, b"#!")

    path = made(tmp_path, build)
    assert read_all(path) == {"a/big": big, "a/stored": b"as it is", "a/run": b"#!"}
    with open_wheel(path) as files:
        assert {file.path: file.mode for file in files}["a/run"] == 0o755


def test_what_is_no_zip_or_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"no zip")
    for name in ("x", "y"):
        with pytest.raises(ExplainedError), open_wheel(tmp_path / name):
            pass


def test_links_are_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("a/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = made(tmp_path, lambda archive: archive.writestr(link, "/etc/passwd"))
    with pytest.raises(CheckError, match="link or device"):
        read_all(path)


@pytest.mark.parametrize(
    "name", ["../up", "/root", "a/../../b", "a\\b", "C:x", "../up/", pytest.param("a/b" * 3000, id="long")]
)
def test_hostile_names_are_refused(tmp_path: Path, name: str) -> None:
    path = made(tmp_path, lambda archive: archive.writestr(name, b""))
    with pytest.raises(ExplainedError, match="path"):
        read_all(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_twice_is_refused(tmp_path: Path) -> None:
    def build(archive: zipfile.ZipFile) -> None:
        archive.writestr("a", b"1")
        archive.writestr("a", b"2")

    path = made(tmp_path, build)
    with pytest.raises(CheckError, match="twice"):
        read_all(path)


def test_other_methods_and_encryption_are_refused(tmp_path: Path) -> None:
    path = made(tmp_path, lambda archive: archive.writestr("a", b"1", zipfile.ZIP_BZIP2))
    with pytest.raises(CheckError, match="compressed by method 12"):
        read_all(path)


def test_another_name_where_the_file_lies_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(zip_of({"aaaa": b"1"}).replace(b"aaaa", b"bbbb", 1))
    with pytest.raises(CheckError, match="contradict each other"):
        read_all(path)


@pytest.mark.parametrize(("offset", "value"), [(16, 1), (24, 0), (24, 900), (24, 1 << 31), (20, 3)])
def test_a_directory_that_lies_about_checksum_or_sizes_is_told(
    tmp_path: Path, offset: int, value: int
) -> None:
    data = bytearray(zip_of({"a": b"text " * 100}))
    struct.pack_into("<L", data, data.index(b"PK\1\2") + offset, value)
    path = tmp_path / "x.zip"
    path.write_bytes(data)
    with pytest.raises(CheckError):
        read_all(path)


def test_files_that_overlap_are_told(tmp_path: Path) -> None:
    data = bytearray(zip_of({"a": b"text " * 100, "b": b"other"}))
    first = data.index(b"PK\1\2")
    size = struct.unpack_from("<L", data, first + 20)[0]
    struct.pack_into("<L", data, first + 20, size + 10)
    path = tmp_path / "x.zip"
    path.write_bytes(data)
    with pytest.raises(CheckError):
        read_all(path)


SMALL = zip_of({**FILES, "data": bytes(range(256)) * 20})


@settings(max_examples=300)
@given(
    changes=st.lists(
        st.tuples(st.integers(0, len(SMALL) - 1), st.binary(min_size=1, max_size=8)), min_size=1, max_size=4
    ),
    end=st.integers(0, len(SMALL)),
)
def test_a_damaged_zip_is_read_or_told_and_nothing_else(
    changes: list[tuple[int, bytes]], end: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = bytearray(SMALL)
    for at, new in changes:
        data[at : at + len(new)] = new
    path = tmp_path_factory.getbasetemp() / "damaged.zip"
    for bytes_ in (data, data[:end]):
        path.write_bytes(bytes_)
        try:
            read_all(path)
        except ExplainedError as error:
            assert error.failure.value in ("input", "check")
