"""Edits on trees: all or none, never without effect, never out of the tree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources.patching.making import diff_of, edit

from rocbase.errors import FailureClass, PatchError
from rocwheel_samples.trees import write_tree
from rocwright.sources.patching.draft import Draft
from rocwright.sources.patching.edits import State, apply_edits, judge

LINES = "int one;\nint two;\nint three;\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "tree", {"src/a.c": LINES, "README": "hello\n"})


def snapshot(tree: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def test_an_edit_replaces_what_matches_and_says_so(tree: Path) -> None:
    told = apply_edits(tree, [edit("src/a.c", regex="int two", replace="long two")], "hello")
    assert (tree / "src/a.c").read_text() == "int one;\nlong two;\nint three;\n"
    assert told == ["edit src/a.c: 1 changed (upstream #1)"]


def test_edits_are_applied_in_order_each_on_what_the_last_left(tree: Path) -> None:
    edits = [
        edit("README", regex="hello", replace="good day"),
        edit("README", literal="day", replace="night"),
        diff_of({"README": ("good night\n", "good night\nbye\n")}),
    ]
    apply_edits(tree, edits, "hello")
    assert (tree / "README").read_text() == "good night\nbye\n"


def test_an_edit_that_matches_nothing_shows_the_nearest_lines(tree: Path) -> None:
    with pytest.raises(PatchError, match=r"the edit of src/a\.c matches 0 times, 1 expected") as caught:
        apply_edits(tree, [edit("src/a.c", literal="int  two;", replace="long two;")], "hello")
    assert "'int  two;'" in caught.value.cause
    assert "2: int two;" in caught.value.detail
    assert "upstream #1" in caught.value.next_step
    assert caught.value.failure is FailureClass.PATCH


@pytest.mark.parametrize("expect", [1, 2, 4])
def test_another_number_of_matches_is_an_error_that_shows_them_and_changes_nothing(
    tree: Path, expect: int
) -> None:
    with pytest.raises(PatchError, match=f"matches 3 times, {expect} expected") as caught:
        apply_edits(tree, [edit("src/a.c", regex="int", replace="long", expect=expect)], "hello")
    assert "1: int one;\n2: int two;\n3: int three;" in caught.value.detail
    assert (tree / "src/a.c").read_text() == LINES


def test_where_one_edit_fails_no_file_is_written(tree: Path) -> None:
    before = snapshot(tree)
    edits = [
        edit("README", literal="hello", replace="bye"),
        diff_of({"new": (None, "text\n"), "src/a.c": (LINES, None)}),
        edit("README", literal="absent", replace="x"),
    ]
    with pytest.raises(PatchError, match="matches 0 times"):
        apply_edits(tree, edits, "hello")
    assert snapshot(tree) == before


def test_an_edit_that_puts_back_what_was_there_is_an_error(tree: Path) -> None:
    with pytest.raises(PatchError, match="changes nothing"):
        apply_edits(tree, [edit("README", regex="hello", replace="hello")], "hello")


def test_an_edit_that_leaves_no_marker_is_an_error(tree: Path) -> None:
    before = snapshot(tree)
    with pytest.raises(PatchError, match="without its marker 'good bye'"):
        apply_edits(tree, [edit("README", regex="h(.)llo", replace=r"b\1e", marker="good bye")], "hello")
    assert snapshot(tree) == before


# there already

THERE = [
    pytest.param(edit("README", literal="good day", replace="hello"), id="literal"),
    pytest.param(edit("README", literal="hell", replace="hello"), id="literal-within-its-replacement"),
    pytest.param(edit("README", regex="good (day)", replace=r"\1", marker="hello"), id="regex-by-marker"),
    pytest.param(edit("README", literal="good", replace="better", absent="good"), id="upstream-took-it-away"),
    pytest.param(edit("CMakeLists.txt", cmake_minimum="3.5"), id="cmake-minimum"),
    pytest.param(edit("src/b.h", include="<cstdint>"), id="include"),
    pytest.param(edit("CMakeLists.txt", list="TARGETS", add=["gfx803"]), id="list"),
    pytest.param(diff_of({"README": ("good day\n", "hello\n")}), id="diff"),
    pytest.param(diff_of({"README": (None, "hello\n")}), id="diff-new-file"),
    pytest.param(diff_of({"absent": ("x\n", None)}), id="diff-file-gone"),
]


@pytest.fixture
def done(tree: Path) -> Path:
    files = {
        "CMakeLists.txt": "CMAKE_MINIMUM_REQUIRED(VERSION 2.8...3.5)\nset(TARGETS gfx803 gfx900)\n",
        "src/b.h": "#pragma once\n# include <cstdint>\n",
    }
    return write_tree(tree, files)


@pytest.mark.parametrize("one", THERE)
def test_what_a_tree_has_already_is_an_error_that_says_to_declare_it(done: Path, one: object) -> None:
    before = snapshot(done)
    with pytest.raises(PatchError, match="the tree already contains the change") as caught:
        apply_edits(done, [one], "hello", "2.0")  # type: ignore[list-item]
    assert "absorbed" in caught.value.next_step
    assert snapshot(done) == before


@pytest.mark.parametrize("one", THERE)
def test_in_the_versions_declared_it_is_reported(done: Path, one: object) -> None:
    declared = one.model_copy(update={"absorbed": ">=2"})  # type: ignore[attr-defined]
    before = snapshot(done)
    (told,) = apply_edits(done, [declared], "hello", "2.0")
    assert "applied already" in told
    assert snapshot(done) == before
    with pytest.raises(PatchError, match="the tree already contains the change"):
        apply_edits(done, [declared], "hello", "1.9")


def test_in_the_versions_declared_an_edit_that_is_still_needed_is_applied(tree: Path) -> None:
    apply_edits(tree, [edit("README", literal="hello", replace="bye", absorbed=">=2")], "hello", "2.0")
    assert (tree / "README").read_text() == "bye\n"


# files


@pytest.mark.parametrize("file", ["../outside", "/etc/passwd", "src/../../outside", "link/outside"])
def test_an_edit_never_leads_out_of_the_tree(tree: Path, file: str) -> None:
    outside = tree.parent / "outside"
    outside.write_text("hello\n")
    (tree / "link").symlink_to(tree.parent)
    with pytest.raises(PatchError, match="points outside the source tree"):
        apply_edits(tree, [edit(file, literal="hello", replace="bye")], "hello")
    assert outside.read_text() == "hello\n"


@pytest.mark.parametrize("file", ["absent.c", "src", "README/below"])
def test_an_edit_of_a_file_that_is_not_there_is_an_error(tree: Path, file: str) -> None:
    with pytest.raises(PatchError, match=f"the edit of {file} names a file that does not exist"):
        apply_edits(tree, [edit(file, regex="x", replace="y")], "hello")


def test_two_names_of_one_file_are_one_file(tree: Path) -> None:
    (tree / "also").symlink_to("README")
    edits = [
        edit("README", literal="hello", replace="good day"),
        edit("also", literal="day", replace="night"),
    ]
    apply_edits(tree, edits, "hello")
    assert (tree / "README").read_text() == "good night\n"
    assert (tree / "also").is_symlink()


def test_a_file_keeps_its_mode(tree: Path) -> None:
    (tree / "README").chmod(0o755)
    apply_edits(tree, [edit("README", literal="hello", replace="bye")], "hello")
    assert os.access(tree / "README", os.X_OK)


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=200))
def test_text_that_an_edit_does_not_touch_stays_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    around = text.replace("MARK", "").encode()
    (folder / "f").write_bytes(around + b"MARK" + around)
    apply_edits(folder, [edit(literal="MARK", replace="M-DONE", marker="M-DONE")], "hello")
    assert (folder / "f").read_bytes() == around + b"M-DONE" + around


@pytest.mark.parametrize(
    ("data", "what"),
    [
        pytest.param("hello é\n".encode() + "naïve\n".encode("latin-1"), "not UTF-8", id="two-encodings"),
        pytest.param("hello\n".encode("utf-16"), "not UTF-8", id="utf-16"),
        pytest.param(b"hello\r\nyou\r\n", "has CRLF line ends", id="crlf"),
        pytest.param(b"hello\r\nyou\n", "has mixed line ends", id="mixed"),
        pytest.param(b"hello\ryou\n", "has mixed line ends", id="carriage-return"),
    ],
)
def test_a_file_of_two_encodings_or_other_line_ends_is_refused(tree: Path, data: bytes, what: str) -> None:
    (tree / "README").write_bytes(data)
    edits = [
        edit("src/a.c", literal="two", replace="2"),
        edit("README", literal="hello", replace="bye"),
    ]
    with pytest.raises(PatchError) as caught:
        apply_edits(tree, edits, "hello")
    assert what in f"{caught.value.message} {caught.value.cause}"
    assert caught.value.next_step
    assert (tree / "README").read_bytes() == data
    assert (tree / "src/a.c").read_text() == LINES


def test_a_file_declared_as_crlf_is_edited_and_stays_so(tree: Path) -> None:
    (tree / "README").write_bytes(b"hello\r\nyou\r\n")
    edits = [
        edit("README", literal="hello\n", replace="bye\nall\n", line_ends="crlf"),
        diff_of({"README": ("bye\nall\nyou\n", "bye\nall\nof you\n")}, line_ends="crlf"),
    ]
    apply_edits(tree, edits, "hello")
    assert (tree / "README").read_bytes() == b"bye\r\nall\r\nof you\r\n"


@pytest.mark.parametrize("data", [b"hello\nyou\n", b"hello\r\nyou\n", b"hello\ryou\r"])
def test_a_file_that_is_not_crlf_throughout_is_not_edited_as_such(tree: Path, data: bytes) -> None:
    (tree / "README").write_bytes(data)
    with pytest.raises(PatchError, match="line ends of README"):
        apply_edits(tree, [edit("README", literal="hello", replace="bye", line_ends="crlf")], "hello")
    assert (tree / "README").read_bytes() == data


def test_a_judgement_writes_nothing(tree: Path) -> None:
    before = snapshot(tree)
    draft = Draft(tree)
    states = [
        judge(one, draft).state
        for one in (
            edit("README", literal="hello", replace="bye"),
            edit("README", literal="hello", replace="bye"),
            edit("README", literal="absent", replace="x"),
            edit("absent", literal="x", replace="y"),
            edit("../out", literal="x", replace="y"),
        )
    ]
    assert states == [State.APPLIES, State.ABSORBED, State.DRIFTED, State.GONE, State.REFUSED]
    assert snapshot(tree) == before


@pytest.mark.parametrize("name", [".git/config", "src/.GIT/config", "link/config"])
def test_an_edit_of_a_git_folder_is_refused(tree: Path, name: str) -> None:
    for folder in (".git", "src/.GIT"):
        (tree / folder).mkdir()
        (tree / folder / "config").write_text("[core]\n")
    (tree / "link").symlink_to(".git")
    with pytest.raises(PatchError, match="is refused: a source tree has no git folder"):
        apply_edits(tree, [edit(name, literal="core", replace="user")], "hello")
