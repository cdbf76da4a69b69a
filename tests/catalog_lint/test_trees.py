"""The trees that a recipe's places give: from git, shipped with rocwright, and those that cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sources.conftest import Repository, repository  # noqa: F401 - a fixture

from rocbase.errors import ExplainedError, FetchError, InputError, NetworkError
from rocwheel_samples.trees import write_tree
from rocwright.catalog.model import Component
from rocwright.catalog_lint.trees import PlacedRelease, Shelf, shelf_here, wanted_trees, why_not
from rocwright.home import Home


def component(*places: dict[str, str]) -> Component:
    releases = [{"version": version, "places": list(places), "source": "x"} for version in ("2.0", "1.0")]
    data = {"name": "hello", "summary": "x", "license": "MIT", "kind": "archive", "release": releases}
    return Component.model_validate(data)


@pytest.fixture
def shelf(home: Home, tmp_path: Path) -> Shelf:
    return Shelf(home, lambda name: tmp_path / "carried" / name, "amd64", lambda line: None)


def test_every_place_of_every_release_is_wanted_and_every_suite_of_a_source_package() -> None:
    places = ({"git": "https://a.invalid/x.git", "tag": "v1"}, {"debian": "hello"})
    found = wanted_trees(component(*places), [], ["sid", "trixie"])
    assert [(one.version, one.kind, one.suite) for one in found] == [
        (version, kind, suite)
        for version in ("2.0", "1.0")
        for kind, suite in (("git", ""), ("debian", "sid"), ("debian", "trixie"))
    ]
    assert [one.version for one in wanted_trees(component(*places), ["1.0"], ["sid"])] == ["1.0", "1.0"]


def test_a_base_has_its_own_suite_and_a_base_of_an_image_has_none(home: Home) -> None:
    assert shelf_here(print, "debian:sid")[1] == ["sid"]
    assert shelf_here(print, "fedora:43")[1] == []
    assert {"sid", "trixie"} <= {*shelf_here(print)[1]}
    with pytest.raises(InputError, match="unknown base"):
        shelf_here(print, "debian:sd")


def test_a_version_that_the_recipe_has_not_is_refused() -> None:
    with pytest.raises(InputError, match=r"hello 9\.9 is not known"):
        wanted_trees(component({"builtin": "hello"}), ["9.9"], [])


def test_a_tree_is_unpacked_from_git_and_goes_away(shelf: Shelf, repository: Repository) -> None:  # noqa: F811
    repository.git("tag", "v1")
    (wanted, _) = wanted_trees(component({"git": repository.url, "tag": "v1"}), [], [])
    with shelf.tree("hello", wanted) as tree:
        assert (tree / "file").read_text() == "one\n"
        assert not (tree / ".git").exists()
    assert not tree.exists()


def test_a_tree_that_rocwright_carries_is_there(shelf: Shelf, tmp_path: Path) -> None:
    write_tree(tmp_path / "carried/hello", {"file": "carried\n"})
    with shelf.tree("hello", wanted_trees(component({"builtin": "hello"}), [], [])[0]) as tree:
        assert (tree / "file").read_text() == "carried\n"


def test_a_repository_that_does_not_answer_is_asked_once_and_says_why(shelf: Shelf, tmp_path: Path) -> None:
    wanted = wanted_trees(component({"git": f"file://{tmp_path}/absent.git", "tag": "v1"}), [], [])
    told: list[ExplainedError] = []
    for one in wanted:
        with pytest.raises((FetchError, NetworkError)) as caught, shelf.tree("hello", one):
            pass
        told.append(caught.value)
    assert "does not answer" not in told[0].message
    assert "does not answer" in told[1].message
    assert why_not(told[0])
    assert why_not(told[0]) in why_not(told[1])
    assert all(isinstance(one, PlacedRelease) for one in wanted)
