"""Files, folders and links below one folder, whatever lies there already."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rocwright.sources.extraction import Extraction, UnsafeMemberError


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    return folder


def test_a_link_of_before_counts_when_a_new_one_goes_through_it(target: Path) -> None:
    (target / "deep/folder").mkdir(parents=True)
    (target / "deep/up").symlink_to("..")
    with Extraction(target) as extraction:
        extraction.add_link(("inside",), "deep/up/deep")
        extraction.close_links()
        extraction.add_link(("outside",), "deep/up/..")
        with pytest.raises(UnsafeMemberError, match="outside the folder"):
            extraction.close_links()
    assert (target / "inside").resolve() == target / "deep"
    assert not os.path.lexists(target / "outside")


def test_a_link_of_before_that_leads_out_is_refused_with_its_path(target: Path) -> None:
    (target / "folder").mkdir()
    (target / "folder/out").symlink_to("../..")
    with Extraction(target) as extraction:
        extraction.add_link(("new",), "folder")
        with pytest.raises(UnsafeMemberError) as caught:
            extraction.close_links()
    assert caught.value.path == "folder/out"


def test_an_empty_folder_is_not_searched_for_links_when_they_are_made(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fwalk", None)
    with Extraction(target) as extraction:
        extraction.add_link(("new",), "file")
        extraction.close_links()
    assert (target / "new").is_symlink()


def test_no_name_is_given_to_what_a_link_leads_to(target: Path) -> None:
    (target / "file").write_text("x")
    (target / "link").symlink_to("file")
    with Extraction(target) as extraction:
        with pytest.raises(KeyError):
            extraction.add_hard_link(("name",), ("link",))
        with pytest.raises(KeyError):
            extraction.add_hard_link(("name",), ("missing", "file"))
    assert sorted(path.name for path in target.iterdir()) == ["file", "link"]
