"""From the places that a recipe names to one exact source."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn, cast

import pytest
from tests.sources.conftest import Index, Repository

from rocbase.errors import FetchError
from rocwheel_samples.trees import write_tree
from rocwright.catalog.place import BuiltinPlace, DebianPlace, GitPlace, IndexPlace, Place
from rocwright.model.steps import DebianSourceOrigin, FilePin, GitOrigin
from rocwright.sources.debian import DebianArchive, SourcePackage
from rocwright.sources.places import Reach, describe, locate, pack_builtin
from rocwright.store.local import LocalStore

GONE = GitPlace(git="http://127.0.0.1:1/x.git", tag="v1")


def no_archive(suite: str) -> NoReturn:
    raise AssertionError("no place here is in an archive")


@pytest.fixture
def reach(store: LocalStore, tmp_path: Path) -> Reach:
    carried = tmp_path / "carried"
    write_tree(carried / "hello", {"a": "1"})
    return Reach(store=store, archive=no_archive, carried=lambda name: carried / name)


def test_the_first_place_that_has_it_is_taken(repository: Repository, reach: Reach) -> None:
    repository.git("tag", "v1")
    places: list[Place] = [GitPlace(git=repository.url, tag="v1"), BuiltinPlace(builtin="hello")]
    found = locate("hello", "1", places, reach)
    commit = repository.git("rev-parse", "HEAD")
    assert found.place == f"git {repository.url} v1 (commit {commit})"
    assert found.files[0].origin == GitOrigin(url=repository.url, commit=commit)
    assert found.passed_over == ()


def test_what_was_fetched_on_the_way_is_in_the_store(repository: Repository, reach: Reach) -> None:
    repository.git("tag", "v1")
    found = locate("hello", "1", [GitPlace(git=repository.url, tag="v1")], reach)
    assert reach.store.has(found.files[0].sha256, found.files[0].size)


def test_the_second_place_is_taken_where_the_first_cannot_be_reached_and_the_reason_is_kept(
    index: Index, reach: Reach
) -> None:
    index.files["hello"] = {"hello-1.0.tar.gz": b"data"}
    place = IndexPlace(sdist="hello", version="1.0", subdir="vendor/hello")
    found = locate("hello", "1", [GONE, place], reach)
    assert found.place == "source distribution hello 1.0"
    assert found.subdir == "vendor/hello"
    [reason] = found.passed_over
    assert reason.startswith("git http://127.0.0.1:1/x.git v1: ")
    assert "connect" in reason


def test_a_moved_tag_is_a_reason_to_pass_a_place_over(repository: Repository, reach: Reach) -> None:
    repository.git("tag", "v1")
    moved = GitPlace(git=repository.url, tag="v1", commit="0" * 40)
    found = locate("hello", "1", [moved, BuiltinPlace(builtin="hello")], reach)
    assert found.place == "carried by rocwright"
    assert "has moved" in found.passed_over[0]


def test_where_no_place_has_it_every_reason_is_told(
    index: Index, repository: Repository, reach: Reach
) -> None:
    places: list[Place] = [
        GONE,
        GitPlace(git=repository.url, tag="v9"),
        IndexPlace(sdist="absent", version="1"),
    ]
    with pytest.raises(FetchError, match="no source of hello 1 can be reached") as caught:
        locate("hello", "1", places, reach)
    lines = caught.value.detail.splitlines()
    assert [line.startswith(f"- {describe(place)}: ") for line, place in zip(lines, places, strict=True)] == [
        True, True, True,
    ]  # fmt: skip


def test_where_a_recipe_names_no_place_nothing_was_tried_and_no_network_is_blamed(reach: Reach) -> None:
    with pytest.raises(FetchError, match="no source of hello 2 is known") as caught:
        locate("hello", "2", [], reach)
    assert "tried" not in caught.value.cause
    assert "hello.toml" in caught.value.next_step


def test_what_rocwright_carries_is_packed_to_the_same_bytes_every_time(reach: Reach) -> None:
    one, other = (locate("hello", "1", [BuiltinPlace(builtin="hello")], reach) for _ in range(2))
    assert one == other
    assert reach.store.has(one.files[0].sha256, one.files[0].size)


def test_byte_code_that_an_import_left_is_no_source(store: LocalStore, tmp_path: Path) -> None:
    write_tree(tmp_path / "carried" / "x", {"setup.py": "pass"})
    clean = pack_builtin("x", tmp_path / "carried" / "x", store)
    write_tree(tmp_path / "carried" / "x", {"__pycache__/setup.cpython-311.pyc": "code"})
    assert pack_builtin("x", tmp_path / "carried" / "x", store) == clean


class Archive:
    """An archive with one source package; its version is the suite's."""

    versions = {"": "2:3.0-1", "trixie": "2:1.5+dfsg-7"}

    def __init__(self, suite: str) -> None:
        self.suite = suite

    def source(self, package: str) -> SourcePackage:
        version = self.versions[self.suite]
        origin = DebianSourceOrigin(
            suite=self.suite or "sid", package=package, version=version, architecture="x"
        )
        names = ("hello.dsc", "hello.debian.tar.xz", "hello.orig.tar.xz", "hello.orig.tar.xz.asc")
        pins = (FilePin(filename=name, sha256="0" * 64, size=1, origin=origin) for name in names)
        return SourcePackage(name=package, version=version, files=tuple(pins))


def test_a_source_package_may_be_of_another_suite_than_the_base(store: LocalStore, tmp_path: Path) -> None:
    reach = Reach(
        store=store,
        archive=lambda suite: cast("DebianArchive", Archive(suite)),
        carried=lambda name: tmp_path / name,
    )
    here, older = (
        DebianPlace(debian="hello"),
        DebianPlace(debian="hello", suite="trixie", series=("a.patch",)),
    )
    found = locate("hello", "1.5", [here, older], reach)
    assert found.place == "Debian source package hello 2:1.5+dfsg-7 (trixie)"
    assert [pin.filename for pin in found.files] == ["hello.orig.tar.xz", "hello.debian.tar.xz"]
    assert "has hello 2:3.0-1" in found.passed_over[0]
    assert [pin.filename for pin in locate("hello", "3.0", [here], reach).files] == ["hello.orig.tar.xz"]
