"""Answers are kept by their question, and for as long as the package lists are the same."""

from __future__ import annotations

from pathlib import Path

from rocwright.catalog.place import IndexPlace
from rocwright.rehearsal.book import Nearest
from rocwright.sources.answers import answers_about, remembered


def test_an_answer_is_kept_until_the_question_is_put_again(tmp_path: Path) -> None:
    calls: list[str] = []

    def find() -> Nearest:
        calls.append("")
        return Nearest(version=str(len(calls)), place=IndexPlace(sdist="engine", version="1"), why="")

    assert remembered(tmp_path, Nearest, ["engine"], find).version == "1"
    assert remembered(tmp_path, Nearest, ["engine"], find).version == "1"
    assert remembered(tmp_path, Nearest, ["other"], find).version == "2"
    assert remembered(tmp_path, Nearest, ["engine"], find, again=True).version == "3"
    for path in tmp_path.iterdir():
        path.write_text("{")
    assert remembered(tmp_path, Nearest, ["engine"], find).version == "4"


def test_answers_about_older_package_lists_go(tmp_path: Path) -> None:
    release = tmp_path / "var/lib/apt/lists/archive_InRelease"
    release.parent.mkdir(parents=True)
    release.write_text("Date: 1")
    older = answers_about(tmp_path)
    older.mkdir(parents=True)
    (older / "root.json").write_text("{}")
    assert answers_about(tmp_path) == older
    assert (older / "root.json").exists()
    release.write_text("Date: 2")
    assert answers_about(tmp_path) != older
    assert not older.exists()
