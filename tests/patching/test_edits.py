"""Edits and patch series: applied for real, and an error when one is without effect."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.making import write_tree

from rocwright.errors import PatchError
from rocwright.patching.edits import apply_edits, apply_series
from rocwright.plan.model import Edit


def edit(file: str, regex: str, replacement: str, expect: int = 1) -> Edit:
    data = {"file": file, "regex": regex, "with": replacement, "expect": expect, "why": "upstream #1"}
    return Edit.model_validate(data)


def patch_of(name: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    return "".join(lines)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "tree", {"src/a.c": "int one;\nint two;\nint three;\n", "README": "hello\n"})


@pytest.fixture
def patches(tmp_path: Path) -> Path:
    folder = tmp_path / "patches"
    folder.mkdir()
    return folder


# edits


def test_an_edit_replaces_what_matches_and_says_so(tree: Path) -> None:
    told = apply_edits(tree, [edit("src/a.c", "int two", "long two")], "hello")
    assert (tree / "src/a.c").read_text() == "int one;\nlong two;\nint three;\n"
    assert told == ["edit src/a.c: 1 changed (upstream #1)"]


def test_an_edit_may_use_what_its_groups_matched(tree: Path) -> None:
    apply_edits(tree, [edit("src/a.c", r"^int (\w+);$", r"long \1;", expect=3)], "hello")
    assert (tree / "src/a.c").read_text() == "long one;\nlong two;\nlong three;\n"


def test_edits_are_applied_in_order_each_on_what_the_last_left(tree: Path) -> None:
    apply_edits(tree, [edit("README", "hello", "good day"), edit("README", "day", "night")], "hello")
    assert (tree / "README").read_text() == "good night\n"


def test_an_edit_that_matches_nothing_is_an_error_that_names_file_regex_and_reason(tree: Path) -> None:
    with pytest.raises(PatchError, match=r"the edit of src/a\.c matches 0 times, 1 expected") as caught:
        apply_edits(tree, [edit("src/a.c", "float", "double")], "hello")
    assert "'float'" in caught.value.cause
    assert "upstream #1" in caught.value.next_step


@pytest.mark.parametrize("expect", [1, 2, 4])
def test_an_edit_that_matches_another_number_of_times_is_an_error_and_changes_nothing(
    tree: Path, expect: int
) -> None:
    with pytest.raises(PatchError, match=f"matches 3 times, {expect} expected"):
        apply_edits(tree, [edit("src/a.c", "int", "long", expect)], "hello")
    assert "long" not in (tree / "src/a.c").read_text()


def test_an_edit_that_puts_back_what_was_there_is_an_error(tree: Path) -> None:
    with pytest.raises(PatchError, match="changes nothing"):
        apply_edits(tree, [edit("README", "hello", "hello")], "hello")


@pytest.mark.parametrize("file", ["../outside", "/etc/passwd", "src/../../outside", "link/outside"])
def test_an_edit_never_leads_out_of_the_tree(tree: Path, file: str) -> None:
    outside = tree.parent / "outside"
    outside.write_text("hello\n")
    (tree / "link").symlink_to(tree.parent)
    with pytest.raises(PatchError, match="leads out of the source tree"):
        apply_edits(tree, [edit(file, "hello", "bye")], "hello")
    assert outside.read_text() == "hello\n"


@pytest.mark.parametrize("file", ["absent.c", "src"])
def test_an_edit_of_a_file_that_is_not_there_is_an_error(tree: Path, file: str) -> None:
    with pytest.raises(PatchError, match=f"the edit of {file} finds no such file"):
        apply_edits(tree, [edit(file, "x", "y")], "hello")


@settings(max_examples=50, deadline=None)
@given(data=st.binary(max_size=200))
def test_bytes_that_an_edit_does_not_touch_stay_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    before = data.replace(b"MARK", b"")
    (folder / "f").write_bytes(before + b"MARK" + before)
    apply_edits(folder, [edit("f", "MARK", "DONE")], "hello")
    assert (folder / "f").read_bytes() == before + b"DONE" + before


def test_an_edit_leaves_the_line_ends_of_other_systems(tree: Path) -> None:
    (tree / "README").write_bytes(b"hello\r\nyou\r\n")
    apply_edits(tree, [edit("README", "hello", "bye")], "hello")
    assert (tree / "README").read_bytes() == b"bye\r\nyou\r\n"


# series


def test_a_series_is_applied_in_order(tree: Path, patches: Path) -> None:
    before = (tree / "src/a.c").read_text()
    (patches / "1.patch").write_text(patch_of("src/a.c", before, before.replace("two", "2")))
    (patches / "2.patch").write_text(
        patch_of("src/a.c", before.replace("two", "2"), before.replace("two", "II"))
    )
    told = apply_series(tree, [patches / "1.patch", patches / "2.patch"], "hello")
    assert (tree / "src/a.c").read_text() == before.replace("two", "II")
    assert told == ["patch 1.patch: 1 files changed", "patch 2.patch: 1 files changed"]


def test_a_patch_that_adds_a_file_adds_it(tree: Path, patches: Path) -> None:
    (patches / "new.patch").write_text("--- /dev/null\n+++ b/new/file\n@@ -0,0 +1 @@\n+text\n")
    apply_series(tree, [patches / "new.patch"], "hello")
    assert (tree / "new/file").read_text() == "text\n"


def test_a_patch_that_was_applied_before_is_refused(tree: Path, patches: Path) -> None:
    before = (tree / "README").read_text()
    (patches / "1.patch").write_text(patch_of("README", before, "bye\n"))
    apply_series(tree, [patches / "1.patch"], "hello")
    with pytest.raises(PatchError, match=r"the patch 1\.patch does not apply"):
        apply_series(tree, [patches / "1.patch"], "hello")
    assert (tree / "README").read_text() == "bye\n"


def test_a_patch_for_another_text_is_refused_without_a_guess(tree: Path, patches: Path) -> None:
    (patches / "1.patch").write_text(patch_of("README", "good day\n", "bye\n"))
    with pytest.raises(PatchError) as caught:
        apply_series(tree, [patches / "1.patch"], "hello")
    assert "FAILED" in caught.value.cause
    assert (tree / "README").read_text() == "hello\n"
    assert not list(tree.rglob("*.orig"))
    assert not list(tree.rglob("*.rej"))


def test_a_patch_whose_context_is_only_near_is_refused(tree: Path, patches: Path) -> None:
    before = (tree / "src/a.c").read_text()
    near = before.replace("one", "eins")
    (patches / "1.patch").write_text(patch_of("src/a.c", near, near.replace("two", "2")))
    with pytest.raises(PatchError):
        apply_series(tree, [patches / "1.patch"], "hello")


@pytest.mark.parametrize("text", ["", "no patch at all\n", "Only a description.\n\n"])
def test_a_file_that_changes_nothing_is_refused(tree: Path, patches: Path, text: str) -> None:
    (patches / "empty.patch").write_text(text)
    with pytest.raises(PatchError, match=r"empty\.patch"):
        apply_series(tree, [patches / "empty.patch"], "hello")


@pytest.mark.parametrize("name", ["../outside", "src/../../outside", "link/outside"])
def test_a_patch_never_writes_outside_of_the_tree(tree: Path, patches: Path, name: str) -> None:
    (tree / "link").symlink_to(tree.parent)
    (patches / "bad.patch").write_text(f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+text\n")
    with pytest.raises(PatchError):
        apply_series(tree, [patches / "bad.patch"], "hello")
    assert not (tree.parent / "outside").exists()


def test_a_patch_of_a_file_that_is_not_there_is_refused(tree: Path, patches: Path) -> None:
    (patches / "1.patch").write_text(patch_of("absent.c", "one\n", "two\n"))
    with pytest.raises(PatchError):
        apply_series(tree, [patches / "1.patch"], "hello")
