"""The same tree in an object store."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import obstore
import pytest
from click.testing import CliRunner

from rocwheel.cli import cli
from rocwheel.errors import InputError, NetworkError
from rocwheel.home import Home
from rocwheel.wheels.index.objects import ObjectTree
from rocwheel.wheels.index.pages import JSON
from rocwheel.wheels.index.place import open_tree
from rocwheel.wheels.index.tree import FolderTree
from rocwheel_samples.index_making import index, make_wheel


class Store(ObjectTree):
    """Objects in memory, and the order in which they came and went."""

    def __init__(self) -> None:
        super().__init__("memory:///")
        self.came: list[str] = []
        self.went: list[str] = []

    def _put(self, key: str, data: Any) -> None:
        self.came.append(key)
        super()._put(key, data)

    def delete(self, keys: Iterable[str]) -> int:
        wanted = list(keys)
        self.went += wanted
        return super().delete(wanted)


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    make_wheel(folder, "plain")
    make_wheel(folder, "kernels", targets=("gfx1151",))
    return folder


def test_the_objects_are_the_files_of_a_folder(wheels: Path, home: Home, tmp_path: Path) -> None:
    store = Store()
    index(wheels, home, tree=store)
    index(wheels, home, str(tmp_path / "out"))
    folder = FolderTree(tmp_path / "out")
    names = set(folder.keys("")) - {".rocwright-index.json"}
    assert set(store.keys("")) - {".rocwright-index.json"} == names
    for name in names:
        assert store.read(name) == folder.read(name)
        assert store.size(name) == folder.size(name)


def test_what_a_page_links_to_comes_before_it_and_the_marker_last(wheels: Path, home: Home) -> None:
    store = Store()
    index(wheels, home, tree=store)
    place = {key: at for at, key in enumerate(store.came)}
    for view in ("", "gfx1151/"):
        page = store.read(f"{view}simple/kernels/index.v1_json")
        assert page is not None
        (file,) = json.loads(page)["files"]
        key = file["url"].replace("../", "")
        for form in ("index.html", "index.v1_json"):
            mine = place[f"{view}simple/kernels/{form}"]
            assert max(place[key], place[key + ".metadata"]) < mine < place[f"{view}simple/{form}"]
    assert store.came[0] == store.came[-1] == ".rocwright-index.json"


def test_objects_have_their_content_type_and_how_long_they_last(wheels: Path, home: Home) -> None:
    store = Store()
    index(wheels, home, tree=store)

    def told(key: str) -> tuple[str, str]:
        attributes = obstore.get(store._store, key).attributes
        return str(attributes["Content-Type"]), str(attributes["Cache-Control"])

    assert told("simple/index.html") == ("text/html; charset=utf-8", "no-cache")
    assert told("gfx1151/simple/plain/index.v1_json") == (JSON, "no-cache")
    (wheel,) = [key for key in store.keys("files") if key.endswith("kernels-1.0-py3-none-any.whl")]
    for key in (wheel, wheel + ".metadata"):
        assert told(key) == ("application/octet-stream", "public, max-age=31536000, immutable")


def test_one_new_wheel_sends_its_own_pages_alone(wheels: Path, home: Home) -> None:
    store = Store()
    index(wheels, home, tree=store)
    store.came.clear()
    make_wheel(wheels, "plain", "2.0")
    index(wheels, home, tree=store)
    sha256 = hashlib.sha256((wheels / "plain-2.0-py3-none-any.whl").read_bytes()).hexdigest()
    file = f"files/{sha256}/plain-2.0-py3-none-any.whl"
    roots = {f"{view}simple/{form}" for view in ("", "gfx1151/") for form in ("index.html", "index.v1_json")}
    pages = {one.replace("simple/", "simple/plain/") for one in roots}
    assert set(store.came) - roots == {file, file + ".metadata", ".rocwright-index.json"} | pages


def test_what_is_taken_away_is_removed_last(wheels: Path, home: Home) -> None:
    store = Store()
    index(wheels, home, tree=store)
    (wheels / "kernels-1.0-py3-none-any.whl").unlink()
    index(wheels, home, tree=store)
    left = set(store.keys(""))
    assert not [key for key in left if "kernels" in key or key.startswith("gfx1151")]
    assert {key.rpartition("/")[2] for key in store.went} == {
        *("index.html", "index.v1_json"),
        *("kernels-1.0-py3-none-any.whl", "kernels-1.0-py3-none-any.whl.metadata"),
    }


def test_another_machine_sends_no_wheel_again(wheels: Path, home: Home) -> None:
    store = Store()
    index(wheels, home, tree=store)
    shutil.rmtree(home.path / "indexes")
    store.came.clear()
    index(wheels, home, tree=store)
    assert not [key for key in store.came if key.endswith(".whl")]


def test_addresses_that_cannot_be_are_told_without_what_is_secret() -> None:
    for url in ("ftp://me:hunter2@host/place", "s3://", "gopher://x"):
        with pytest.raises(InputError) as error:
            open_tree(url)
        assert "hunter2" not in str(error.value.as_dict())


def test_a_store_that_does_not_answer_is_told_without_what_is_secret(
    wheels: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "hunter1",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ALLOW_HTTP": "true",
        "ROCWRIGHT_HOME": str(home.path),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("rocwheel.wheels.index.objects.RETRIES", 0)
    with pytest.raises(NetworkError) as error:
        index(wheels, home, "s3://bucket/place")
    assert "s3://bucket/place" in error.value.message
    assert "hunter" not in str(error.value.as_dict())
    done = CliRunner().invoke(cli, ["index", "build", str(wheels), "--out", "s3://bucket/place"])
    assert "hunter" not in done.output + repr(done.exception)


def test_a_file_url_is_a_folder(tmp_path: Path) -> None:
    tree = open_tree(f"file://{tmp_path}/a%20b")
    assert isinstance(tree, FolderTree)
    assert tree.path == tmp_path / "a b"
