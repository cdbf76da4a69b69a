"""The folders of a catalog: a path in one names what lies in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocbase.toml.folders import holder, read_table, read_toml


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A catalog, beside a file that is none of its."""
    catalog = tmp_path / "catalog"
    (catalog / "sources/inside").mkdir(parents=True)
    (tmp_path / "secret").write_text("x")
    return catalog


def test_what_lies_in_a_catalog_is_found(folder: Path) -> None:
    assert holder("sources/inside", [folder]) == folder
    assert holder("sources/none", [folder]) is None
    (folder / "again").symlink_to("sources/inside")
    assert holder("again", [folder]) == folder


@pytest.mark.parametrize("name", ["../secret", "sources/../../secret", "sources/../../../etc", "/etc/passwd"])
def test_a_path_that_leads_out_of_it_is_refused(folder: Path, name: str) -> None:
    if name == "sources/../../../etc":
        (folder.parent.parent / "etc").mkdir()
    with pytest.raises(InputError, match="points outside the catalog"):
        holder(name, [folder])


def test_a_link_that_leads_out_of_it_is_refused(folder: Path) -> None:
    (folder / "sources/link").symlink_to("../../secret")
    with pytest.raises(InputError, match="points outside the catalog"):
        holder("sources/link", [folder])


@pytest.mark.parametrize(
    ("text", "line"),
    [('gpu = ["a"', 1), ("a = 1\na = 2", 2), ("a = 1\nb = [\n\n", 3), ("a = 1\na = 2\n", 2)],
)
def test_a_fault_at_the_end_of_a_file_has_a_line_too(text: str, line: int, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_toml(tmp_path / "x.toml")
    assert f"(at line {line}, " in caught.value.cause


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x.toml")
    with pytest.raises(InputError, match="cannot be read"):
        read_toml(tmp_path / "x.toml")


SPREAD = """
[sources]
datasheet = "the datasheet, page 3"
[default.card]
by   = "name"
wave = 32
[card.old]
wave   = 64
source = ["{datasheet}"]
[card."new one"]
source = ["a report"]
[default.plain]
size = 1
[[plain]]
name = "a"
"""


def test_what_a_file_says_once_is_said_by_its_rows(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(SPREAD)
    assert read_table(tmp_path / "x.toml") == {
        "card": [
            {"name": "old", "wave": 64, "source": ["the datasheet, page 3"]},
            {"name": "new one", "wave": 32, "source": ["a report"]},
        ],
        "plain": [{"size": 1, "name": "a"}],
    }


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("default.plain", "default.plane", r"x\.toml: default\.plane is of no rows"),
        ('by   = "name"', "", r"default\.card is of no rows"),
        ("{datasheet}", "{datashet}", "cites a source that is not there"),
        ('"{datasheet}"', "3", "cites a source that is not there"),
        ("{datasheet}", "{datasheet:>999999999}", "cites a source that is not there"),
        ("[sources]\ndatasheet", "sources", r"sources\. is no short text"),
        ("the datasheet", "x" * 600, r"sources\.datasheet is no short text"),
        ('"the datasheet, page 3"', "3", r"sources\.datasheet is no short text"),
    ],
)
def test_a_default_of_nothing_and_an_unknown_source_are_refused(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    (tmp_path / "x.toml").write_text(SPREAD.replace(before, after))
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / "x.toml")
