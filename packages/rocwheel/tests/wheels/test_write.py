from __future__ import annotations

import csv
import hashlib
import io
import os
import stat
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocbase.errors import CheckError, InputError, InternalError
from rocwheel.wheels import zipping
from rocwheel.wheels.archive import open_wheel
from rocwheel.wheels.metadata import read_record
from rocwheel.wheels.write import WheelFile, check_paths, epoch_from_environment, write_wheel
from rocwheel_samples.wheel_making import FILES, small_wheel

EPOCH = 1_700_000_000
INFO = "small-1.0.dist-info"


def files_of(contents: dict[str, bytes]) -> list[WheelFile]:
    return [WheelFile(path=path, content=data) for path, data in contents.items()]


def written(folder: Path, contents: dict[str, bytes], epoch: int = EPOCH) -> bytes:
    out = folder / "out.whl"
    write_wheel(out, files_of(contents), epoch=epoch)
    return out.read_bytes()


part = st.text(st.sampled_from("abcXYZ019_.-é漢 "), min_size=1, max_size=8).filter(
    lambda text: text.strip(".") and not text.endswith(".dist-info") and text != INFO
)
paths = st.lists(part, min_size=1, max_size=3).map("/".join)
contents = st.dictionaries(paths, st.binary(max_size=200), max_size=6).filter(
    lambda made: not any(other.startswith(f"{path}/") for path in made for other in made)
)


@given(made=contents, order=st.randoms(use_true_random=False))
def test_what_is_written_is_read_back_and_the_order_of_the_files_does_not_matter(
    made: dict[str, bytes], order: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("round")
    every = {**made, **{path: data for path, data in FILES.items() if path.startswith(INFO)}}
    names = list(every)
    order.shuffle(names)  # type: ignore[attr-defined]
    data = written(folder, {name: every[name] for name in names})

    assert data == written(folder, every)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        assert {
            name: archive.read(name) for name in archive.namelist() if not name.endswith("RECORD")
        } == every
    with open_wheel(folder / "out.whl") as files:
        assert {file.path: file.read() for file in files if not file.path.endswith("RECORD")} == every


def test_record_is_last_names_every_file_and_has_its_hash_and_size(tmp_path: Path) -> None:
    written(tmp_path, {**FILES, "small/a,b.txt": b"1", f"{INFO}/RECORD": b"lies"})
    with zipfile.ZipFile(tmp_path / "out.whl") as archive:
        names = archive.namelist()
        rows = read_record(archive.read(f"{INFO}/RECORD"))
        assert names == [
            "small/__init__.py",
            "small/a,b.txt",
            f"{INFO}/METADATA",
            f"{INFO}/WHEEL",
            f"{INFO}/RECORD",
        ]
        assert [row.path for row in rows] == names
        for row in rows[:-1]:
            assert row.sha256 == hashlib.sha256(archive.read(row.path)).hexdigest()
            assert row.size == len(archive.read(row.path))
        assert (rows[-1].sha256, rows[-1].size) == (None, None)
        assert (
            next(csv.reader([archive.read(f"{INFO}/RECORD").decode().splitlines()[1]]))[0] == "small/a,b.txt"
        )


def test_members_have_one_time_two_modes_and_nothing_extra(tmp_path: Path) -> None:
    out = tmp_path / "out.whl"
    every = [
        *files_of(FILES),
        WheelFile(path="small/run", content=b"#!/bin/sh\n", mode=0o4711),
        WheelFile(path="small/secret", content=b"", mode=0o600),
    ]
    write_wheel(out, every, epoch=EPOCH)
    with zipfile.ZipFile(out) as archive:
        for info in archive.infolist():
            assert info.date_time == (2023, 11, 14, 22, 13, 20)
            assert (info.extra, info.comment, info.create_system) == (b"", b"", 3)
            assert info.compress_type == zipfile.ZIP_DEFLATED
            mode = 0o755 if info.filename == "small/run" else 0o644
            assert info.external_attr >> 16 == stat.S_IFREG | mode


@pytest.mark.parametrize(
    ("epoch", "time"),
    [
        (0, (1980, 1, 1, 0, 0, 0)),
        (-5, (1980, 1, 1, 0, 0, 0)),
        (10**15, (2107, 12, 31, 23, 59, 58)),
        (EPOCH + 1, (2023, 11, 14, 22, 13, 20)),
    ],
)
def test_times_are_bounded_to_what_a_zip_can_hold(tmp_path: Path, epoch: int, time: tuple[int, ...]) -> None:
    written(tmp_path, FILES, epoch)
    with zipfile.ZipFile(tmp_path / "out.whl") as archive:
        assert {info.date_time for info in archive.infolist()} == {time}


def test_the_bytes_are_those_that_were_written_down(tmp_path: Path) -> None:
    """A change of these is a change for everybody who compares hashes: say it in the changelog."""
    data = written(tmp_path, {**FILES, "small/data": bytes(range(256)) * 10_000})
    assert hashlib.sha256(data).hexdigest() == GOLDEN


GOLDEN = "461e0e88c17d5985e9729cba41390edaf3d9fd7e0b7a541ee6957b53618eac08"


def test_how_much_a_source_gives_at_a_time_does_not_change_the_bytes(tmp_path: Path) -> None:
    big = os.urandom(700_000) + bytes(range(256)) * 9000
    path = tmp_path / "big"
    path.write_bytes(big)

    class Trickle:
        size = len(big)

        def unpacked(self) -> object:
            return (big[i : i + 99_991] for i in range(0, len(big), 99_991))

    every = []
    for content in (big, path, Trickle()):
        out = tmp_path / "out.whl"
        write_wheel(out, [*files_of(FILES), WheelFile(path="big", content=content)], epoch=EPOCH)  # type: ignore[arg-type]
        every.append(out.read_bytes())
    assert every[0] == every[1] == every[2]


def test_files_of_other_wheels_are_copied_as_they_lie_there_when_asked(tmp_path: Path) -> None:
    original = small_wheel(tmp_path, {**FILES, "small/text": b"text " * 5000})
    out = tmp_path / "out.whl"
    with open_wheel(original) as files:
        write_wheel(out, files, epoch=EPOCH, copy=True)
    with zipfile.ZipFile(original) as one, zipfile.ZipFile(out) as two:
        assert one.getinfo("small/text").compress_size == two.getinfo("small/text").compress_size
        assert two.read("small/text") == b"text " * 5000
        assert two.testzip() is None
        assert {row.path for row in read_record(two.read(f"{INFO}/RECORD"))} == set(two.namelist())


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a//b",
        "./a",
        "a/.",
        "C:/x",
        "a\\b",
        "a\0b",
        "a\nb",
        "",
        "a/",
        "\u202ea",
    ],
)
def test_paths_that_leave_their_folder_are_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        write_wheel(tmp_path / "out.whl", [*files_of(FILES), WheelFile(path=path, content=b"")], epoch=0)
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_there_twice_or_is_also_a_folder_is_refused() -> None:
    with pytest.raises(InputError, match="twice"):
        check_paths(["a", "b", "a"])
    with pytest.raises(InputError, match="a file and a folder"):
        check_paths(["a/b", "a"])


def test_a_signed_wheel_is_not_written_anew(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="signed"):
        written(tmp_path, {**FILES, f"{INFO}/RECORD.jws": b"{}"})


def test_a_source_that_lies_about_its_size_leaves_nothing_behind(tmp_path: Path) -> None:
    class Lies:
        size = 10

        def unpacked(self) -> object:
            return iter([b"123"])

    with pytest.raises(InternalError, match="should have 10 bytes"):
        write_wheel(
            tmp_path / "out.whl",
            [*files_of(FILES), WheelFile(path="x", content=Lies())],  # type: ignore[arg-type]
            epoch=0,
        )
    assert list(tmp_path.iterdir()) == []


def test_another_compressor_is_found_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zipping, "isal_zlib", zlib)
    zipping.check_compressor.cache_clear()
    with pytest.raises(CheckError, match="does not give the same bytes"):
        written(tmp_path, FILES)
    assert list(tmp_path.iterdir()) == []


def test_source_date_epoch_is_read_and_nonsense_in_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert epoch_from_environment() == EPOCH
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(InputError, match="whole number"):
        epoch_from_environment()
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert epoch_from_environment() == zipping.EARLIEST


def test_pip_installs_what_is_written(tmp_path: Path) -> None:
    wheel = tmp_path / "small-1.0-py3-none-any.whl"
    write_wheel(wheel, files_of(FILES), epoch=EPOCH)
    into = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", into, wheel],
        check=True,
    )
    assert (into / "small/__init__.py").read_bytes() == FILES["small/__init__.py"]
