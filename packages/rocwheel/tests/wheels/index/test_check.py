"""A tree that was damaged is told from one that is whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocbase.errors import InputError
from rocwheel.wheels.index.check import check
from rocwheel.wheels.index.yanks import yank
from rocwheel_samples.index_making import index, make_wheel

WHEEL = "plain-1.0-py3-none-any.whl"
PAGE = "simple/plain/index.v1_json"
MARKER = "simple/.rocwright-index.json"


@pytest.fixture(params=["in place", "brought"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    make_wheel(folder / "deeper", "plain")
    make_wheel(folder, "plain", "2.0")
    make_wheel(folder, "kernels", "1.0+a", targets=("gfx1151",))
    yank(folder, "plain", "2.0", 'for "reasons" & more')
    yank(folder, "kernels", "1.0+a", "")
    out = folder if request.param == "in place" else tmp_path / "out"
    index(folder, out)
    return out


def wrong(tree: Path, *, hashes: bool = True) -> dict[str, str]:
    return {one.place: one.what for one in check(tree, hashes=hashes)}


def change(path: Path, what: Callable[[Any], None]) -> None:
    data = json.loads(path.read_text())
    what(data)
    path.write_text(json.dumps(data))


def test_nothing_is_wrong_with_what_was_written(tree: Path) -> None:
    assert wrong(tree) == {}


def test_a_wheel_that_is_not_there(tree: Path) -> None:
    next(tree.rglob(WHEEL)).unlink()
    assert {place: "is missing" in what for place, what in wrong(tree).items()} == {
        PAGE: True,
        f"gfx1151/{PAGE}": True,
    }


def test_a_wheel_that_changed(tree: Path) -> None:
    path = next(tree.rglob(WHEEL))
    data = path.read_bytes()
    path.unlink()  # it may be a link to the one that was brought
    path.write_bytes(data[:-1] + b"x")
    assert "does not have the sha256" in wrong(tree)[PAGE]
    assert wrong(tree, hashes=False) == {}
    path.write_bytes(data + b"x")
    assert "bytes, its page says" in wrong(tree, hashes=False)[PAGE]


def test_metadata_that_changed(tree: Path) -> None:
    next(tree.rglob(WHEEL + ".metadata")).write_text("Name: other\n")
    assert ".metadata is missing, or does not have the" in wrong(tree, hashes=False)[PAGE]


def test_a_page_that_is_not_there(tree: Path) -> None:
    (tree / "simple/plain/index.html").unlink()
    (tree / "gfx1151/simple/index.v1_json").unlink()
    found = wrong(tree)
    assert "differs from its JSON form" in found["simple/plain/index.html"]
    assert "missing" in found["gfx1151/simple/index.v1_json"]


def test_a_page_that_nothing_links_to(tree: Path) -> None:
    (tree / "simple/more").mkdir()
    (tree / "simple/more/index.html").write_text("")
    assert wrong(tree) == {"simple/more/index.html": "no page links to it"}


@pytest.mark.parametrize(
    "address",
    [
        "https://elsewhere/" + WHEEL,
        "//elsewhere/" + WHEEL,
        "/etc/passwd",
        "../../%2e%2e/x/" + WHEEL,
        "http://[",
    ],
)
def test_an_address_that_leads_elsewhere(tree: Path, address: str) -> None:
    change(tree / PAGE, lambda data: data["files"][0].update(url=address))
    found = wrong(tree)
    assert any(text in found[PAGE] for text in ("points outside", "is missing"))
    assert "differs from its JSON form" in found["simple/plain/index.html"]


def test_a_view_that_says_something_else(tree: Path) -> None:
    change(tree / "gfx1151" / PAGE, lambda data: data["files"][1].pop("yanked"))
    assert "says something else" in wrong(tree)[f"gfx1151/{PAGE}"]


@pytest.mark.parametrize("data", ["", "[]", "{", '{"files": 1}', '{"files": [1]}', '{"files": [{}]}'])
def test_damaged_pages_are_told(tree: Path, data: str) -> None:
    (tree / PAGE).write_text(data)
    assert PAGE in wrong(tree)


def test_a_tree_that_was_not_finished(tree: Path) -> None:
    change(tree / MARKER, lambda data: data.update(whole=False))
    assert "not written to its end" in wrong(tree)[MARKER]
    (tree / MARKER).write_text("{")
    assert "not written to its end" in wrong(tree)[MARKER]


def test_a_folder_without_an_index(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no"):
        wrong(tmp_path)
