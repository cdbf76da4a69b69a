"""A folder that others may write to: no link in it is followed, and no special file waited for."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwright.store.bucket import Bucket
from rocwright.store.contents import YOUNG, clean
from rocwright.store.shared import FORMAT, SCHEMA
from rocwright.store.shared_folder import UNFINISHED, SharedFolder

LONG_AGO = time.time() - 2 * YOUNG


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """Files of somebody, older than what a clean-up leaves alone."""
    folder = tmp_path / "documents"
    folder.mkdir()
    for name in ("letter", "thesis"):
        (folder / name).write_text(name)
        os.utime(folder / name, (LONG_AGO, LONG_AGO))
    return folder


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / FORMAT).write_text(json.dumps({"schema": SCHEMA, "name": "lab"}))
    return folder


@pytest.fixture
def bucket(shared: Path) -> Bucket:
    return Bucket(shared.as_uri())


@pytest.mark.parametrize("place", ["blobs", "blobs/ab"])
def test_a_clean_up_removes_nothing_behind_a_link(
    bucket: Bucket, shared: Path, documents: Path, place: str
) -> None:
    (shared / place).parent.mkdir(exist_ok=True)
    (shared / place).symlink_to(documents)
    try:
        clean(bucket)
    except InputError as error:
        assert place in error.message
    assert sorted(path.name for path in documents.iterdir()) == ["letter", "thesis"]


def test_a_clean_up_removes_what_is_old(bucket: Bucket, shared: Path) -> None:
    old, new = f"blobs/aa/{'a' * 64}", f"blobs/bb/{'b' * 64}"
    bucket.add(old, b"1")
    bucket.add(new, b"2")
    os.utime(shared / old, (LONG_AGO, LONG_AGO))
    assert clean(bucket).files == 1
    assert [found.name for found in bucket.list("blobs")] == [new]


@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_what_is_no_file_is_refused_by_name_at_once(
    bucket: Bucket, shared: Path, documents: Path, kind: str
) -> None:
    place = shared / FORMAT
    place.unlink()
    if kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to(documents / "letter")
    for read in (lambda: bucket.get("format.json", 100), lambda: bucket.size("format.json")):
        with pytest.raises(InputError, match=r"format\.json is no file of a store"):
            read()


def test_nothing_is_written_behind_a_link(bucket: Bucket, shared: Path, documents: Path) -> None:
    (shared / "steps").symlink_to(documents)
    for write in (bucket.add, bucket.replace):
        with pytest.raises(InputError, match="steps is no folder of a store"):
            write("steps/letter", b"x")
    with pytest.raises(InputError):
        bucket.remove("steps/letter")
    assert (documents / "letter").read_text() == "letter"


def test_an_object_is_put_once_and_whole(bucket: Bucket, shared: Path) -> None:
    assert bucket.add("a/b", b"1")
    assert not bucket.add("a/b", b"2")
    assert bucket.get("a/b", 10) == b"1"
    bucket.replace("a/b", iter([b"3", b"4"]))
    assert b"".join(bucket.chunks("a/b", 1)) == b"4"
    assert [path.name for path in (shared / "a").iterdir()] == ["b"]


@pytest.mark.parametrize("name", ["..", "../x", "objects/../../x", "objects//x", "objects/./x", ""])
def test_what_is_no_name_of_an_object_is_refused(bucket: Bucket, shared: Path, name: str) -> None:
    folder = SharedFolder(shared)
    for use in (folder.remove, lambda name: folder.put(name, b"x", replace=True)):
        with pytest.raises(ValueError, match="is not the name of an object"):
            use(name)
    assert sorted(path.name for path in shared.parent.iterdir()) == ["store"]


def test_the_folder_of_a_new_store_is_made_with_those_above_it(tmp_path: Path) -> None:
    folder = SharedFolder(tmp_path / "a/b")
    assert folder.put("objects/ab/x", b"1", replace=False)
    assert (tmp_path / "a/b/objects/ab/x").read_bytes() == b"1"


def test_a_link_in_the_place_of_what_is_being_written_is_not_followed(shared: Path, documents: Path) -> None:
    def data() -> Iterator[bytes]:
        yield b"x"
        (unfinished,) = (shared / "objects").iterdir()
        unfinished.unlink()
        unfinished.symlink_to(documents / "letter")

    SharedFolder(shared).put("objects/x", data(), replace=False)
    assert (documents / "letter").stat().st_nlink == 1


def test_a_listing_holds_no_links_and_nothing_unfinished(shared: Path, documents: Path) -> None:
    (shared / "objects").mkdir()
    (shared / "objects/link").symlink_to(documents / "letter")
    (shared / f"objects/x{UNFINISHED}1").write_text("half")
    (shared / "objects/whole").write_text("whole")
    assert [found.name for found in SharedFolder(shared).list("objects")] == ["objects/whole"]


def test_a_folder_below_that_is_none_is_named_in_full(shared: Path) -> None:
    (shared / "objects/ab").mkdir(parents=True)
    (shared / "objects/ab/cd").write_text("x")
    with pytest.raises(InputError, match="objects/ab/cd is no folder"):
        SharedFolder(shared).put("objects/ab/cd/ef/x", b"1", replace=True)
