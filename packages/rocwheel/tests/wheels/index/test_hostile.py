"""Files that are not what they say: told, left out, and harmless."""

from __future__ import annotations

import os
import struct
import time
import warnings
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocbase.errors import CheckError
from rocbase.files.bounds import METADATA
from rocwheel.wheels.index.examine import examine, wheel_name
from rocwheel.wheels.index.look import MOST_DEEP, look, scan
from rocwheel.wheels.index.model import MARKER, FileFingerprint, Problem
from rocwheel.wheels.index.write import write
from rocwheel_samples.fatbin import entry_id, gpu_elf, plain_bundle
from rocwheel_samples.index_making import anchors, index, make_wheel, page
from rocwheel_samples.tables import each

NAME = "bad-1.0-py3-none-any.whl"


def problem(folder: Path, name: str = NAME) -> str:
    """Why a file is left out."""
    told = (folder / name).stat(follow_symlinks=False)
    found = examine(folder, FileFingerprint(name, told.st_size, told.st_mtime_ns, told.st_ino))
    assert isinstance(found, Problem)
    return found.what


def _end(count: int, size: int) -> bytes:
    """The end of a zip, whose directory would lie at its beginning."""
    return b"PK\5\6" + struct.pack("<4H2LH", 0, 0, count, count, size, 0, 0)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param(b"", "no directory", id="empty"),
        pytest.param(b"<html>404</html>", "no directory", id="html"),
        pytest.param(_end(0, 0), "no METADATA", id="empty zip"),
        pytest.param(_end(0, 0) + b"more", "data after its end", id="more behind"),
        pytest.param(_end(1, 46), "directory is in the wrong place", id="directory outside"),
        pytest.param(bytes(46) + _end(1, 46), "damaged", id="no directory there"),
        pytest.param(_end(65535, 0), "truncated", id="no members"),
    ],
)
def test_what_is_no_wheel_is_left_out(tmp_path: Path, data: bytes, says: str) -> None:
    (tmp_path / NAME).write_bytes(data)
    assert says in problem(tmp_path)


@pytest.mark.parametrize(("size", "says"), [(1 << 36, "no directory"), (1 << 40, "at most")])
def test_a_file_of_any_size_is_no_wheel_at_once(tmp_path: Path, size: int, says: str) -> None:
    (tmp_path / NAME).touch()
    os.truncate(tmp_path / NAME, size)
    assert says in problem(tmp_path)


def test_a_marker_of_any_size_fills_no_memory(tmp_path: Path) -> None:
    make_wheel(tmp_path, "good")
    (tmp_path / "simple").mkdir()
    marker = tmp_path / "simple" / MARKER
    marker.touch()
    os.truncate(marker, 1 << 40)
    found, _ = write(tmp_path, tmp_path, ours=True)
    assert found.read == 1 and marker.stat().st_size < 4096


def test_a_look_that_is_ended_waits_for_no_wheel(tmp_path: Path) -> None:
    # stored bytes that take some 30 s to be hashed
    with zipfile.ZipFile(make_wheel(tmp_path, "large"), "a") as archive:
        archive.start_dir = 1 << 34
        archive.writestr("large/data", b"x")

    def end(done: int, of: int) -> None:
        raise KeyboardInterrupt

    make_wheel(tmp_path, "first")
    begun = time.process_time()
    with pytest.raises(KeyboardInterrupt):
        look(tmp_path, progress=end)
    assert time.process_time() - begun < 5


def test_the_good_are_listed_beside_the_bad(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    make_wheel(folder, "good")
    (folder / NAME).write_bytes(b"no zip")
    (folder / "nonsense.whl").write_bytes(b"")
    look, _ = index(folder)
    assert [one.path for one in look.problems] == [NAME, "nonsense.whl"]
    assert [one["name"] for one in page(folder)["projects"]] == ["good"]
    again, _ = index(folder)
    assert again.problems == look.problems


def test_a_wheel_under_another_name_is_left_out(tmp_path: Path) -> None:
    make_wheel(tmp_path, "good").rename(tmp_path / NAME)
    assert "another project" in problem(tmp_path)


def test_metadata_of_another_project_is_left_out(tmp_path: Path) -> None:
    make_wheel(tmp_path, "bad", metadata=b"Metadata-Version: 2.1\nName: good\nVersion: 1.0\n\n")
    assert "unlike its file name" in problem(tmp_path)


def test_what_stands_in_the_description_is_no_header(tmp_path: Path) -> None:
    make_wheel(tmp_path, "bad", metadata=b"Metadata-Version: 2.1\n\nName: bad\nVersion: 1.0\n")
    assert "unlike its file name" in problem(tmp_path)


def test_huge_metadata_is_not_unpacked(tmp_path: Path) -> None:
    make_wheel(tmp_path, "bad", metadata=b"Name: bad\nVersion: 1.0\n\n" + bytes(METADATA))
    assert "at most" in problem(tmp_path)


def test_metadata_that_is_more_than_it_says_is_not_believed(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, "bad", metadata=b"Name: bad\nVersion: 1.0\n\n" + bytes(100_000))
    data = path.read_bytes()
    path.write_bytes(data.replace(struct.pack("<L", 100_024), struct.pack("<L", 50)))
    assert "decompresses to more" in problem(tmp_path)


def test_two_members_of_one_name_are_not_believed(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, "bad")
    with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("bad-1.0.dist-info/METADATA", "Name: other\nVersion: 1.0\n")
    assert "twice" in problem(tmp_path)


def test_a_name_that_differs_where_it_lies_is_not_believed(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, "bad")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"bad-1.0.dist-info/METADATA", b"bad-1.0.dist-info/METADATX", 1))
    assert "contradict" in problem(tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300), st.integers(0, 2000), st.integers(0, 2000))
def test_any_damage_is_told_and_never_crashes(tmp_path: Path, noise: bytes, begin: int, length: int) -> None:
    data = make_wheel(tmp_path / "good", "bad", targets=("gfx1100",)).read_bytes()
    (tmp_path / NAME).write_bytes(data[:begin] + noise + data[begin + length :])
    told = (tmp_path / NAME).stat()
    found = examine(tmp_path, FileFingerprint(NAME, told.st_size, told.st_mtime_ns, told.st_ino))
    assert not isinstance(found, Problem) or "a fault of rocwheel" not in found.what


@given(st.text(max_size=60))
def test_a_name_is_a_wheels_or_an_error(text: str) -> None:
    try:
        project, version = wheel_name(text + ".whl")
    except CheckError:
        return
    assert project == project.lower()
    assert not {"/", "<", '"', "&", " "} & set(project + version)


@each(
    "name",
    [
        "<script>alert(1)</script>-1.0-py3-none-any.whl".replace("/", "%2f"),
        'bad-1.0-"onclick=x"-none-any.whl',
        "bad-1.0-py3-none-any#sha256=00.whl",
        "bad-1.0-..%2f..-none-any.whl",
        "b\N{CYRILLIC SMALL LETTER A}d-1.0-py3-none-any.whl",
        "bad-not.a.version-py3-none-any.whl",
        "bad-1.0.whl",
        "bad" * 90 + "-1.0-py3-none-any.whl",
    ],
)
def test_tricks_in_names_are_told(name: str) -> None:
    with pytest.raises(CheckError, match="name is not a valid wheel filename"):
        wheel_name(name)


def test_names_that_cannot_be_printed_are_told_so_that_they_can(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    make_wheel(folder, "good")
    (folder / "bad\x1b[31m-1.0-py3-none-any.whl").write_bytes(b"")
    Path(os.fsdecode(os.fsencode(folder) + b"/bad\xff-1.0-py3-none-any.whl")).write_bytes(b"")
    look, _ = index(folder)
    assert [one.path.isprintable() and one.path.isascii() for one in look.problems] == [True, True]


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    make_wheel(folder, "good")
    secret = make_wheel(tmp_path / "secret", "secret")
    (folder / secret.name).symlink_to(secret)
    (folder / "more").symlink_to(secret.parent)
    (folder / "lost-1.0-py3-none-any.whl").symlink_to("nowhere")
    (folder / "again-1.0-py3-none-any.whl").symlink_to("good-1.0-py3-none-any.whl")
    look, _ = index(folder)
    assert len(look.wheels) == 1
    assert {one.path: "out of the folder" in one.what for one in look.problems} == {
        secret.name: True,
        "more": True,
        "lost-1.0-py3-none-any.whl": False,
    }


def test_hidden_files_other_indexes_and_deep_folders_are_not_looked_into(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    good = make_wheel(folder, "good")
    deep = "/".join("d" * MOST_DEEP)
    for place in (".hidden", "other/below", deep, f"{deep}/d", "odd\x07folder"):
        (folder / place).mkdir(parents=True, exist_ok=True)
        (folder / place / good.name).write_bytes(b"")
    (folder / "other" / MARKER).write_text("")
    (folder / f".{good.name}").write_bytes(b"")
    seen, problems = scan(folder)
    assert [one.path for one in seen] == [f"{deep}/{good.name}", good.name]
    assert {one.path for one in problems} == {f"{deep}/d/", ascii("odd\x07folder/")}


def test_a_pipe_is_no_wheel(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    make_wheel(folder, "good")
    os.mkfifo(folder / NAME)
    (look, _) = index(folder)
    assert [one.what for one in look.problems] == ["it is not a regular file"]


def test_two_files_of_one_name_list_one(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    make_wheel(folder / "a", "good")
    make_wheel(folder / "b", "good", files={"more": b"more"})
    make_wheel(folder / "c", "good").write_bytes((folder / "a/good-1.0-py3-none-any.whl").read_bytes())
    look, _ = index(folder)
    assert [one.path for one in look.problems] == ["b/good-1.0-py3-none-any.whl"]
    assert [one["url"] for one in page(folder, "good")["files"]] == ["../../a/good-1.0-py3-none-any.whl"]


def test_requires_python_is_escaped(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    make_wheel(folder, "good", requires='>=3"><script>alert(1)</script>')
    index(folder)
    html = (folder / "simple/good/index.html").read_text()
    assert "<script>" not in html
    ((_, told, _),) = anchors(html)
    assert told["data-requires-python"] == page(folder, "good")["files"][0]["requires-python"]


def test_code_that_lies_about_its_target_makes_no_view(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    bundle = plain_bundle([(entry_id("simple"), gpu_elf(0x36))])
    make_wheel(folder, "good", files={"good/code.hipfb": bundle})
    look, _ = index(folder)
    assert len(look.problems) == 1
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {"simple"}
