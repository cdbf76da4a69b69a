"""Unified diffs: exact, whole or not at all, the same as patch(1) does, and never out of the tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources.patching.making import diff_of, edit, patch_text

from rocbase.errors import PatchError
from rocwheel_samples.tables import each
from rocwheel_samples.trees import write_tree
from rocwright.sources.patching.diffs import apply_hunks, parse_diff
from rocwright.sources.patching.edits import apply_edits

TEN = "".join(f"line {number}\n" for number in range(10))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "tree", {"a.txt": TEN, "sub/b.txt": "b\n"})


def test_a_diff_changes_adds_and_removes_files(tree: Path) -> None:
    files: dict[str, tuple[str | None, str | None]] = {
        "a.txt": (TEN, TEN.replace("line 3", "three")),
        "sub/b.txt": ("b\n", None),
        "new/c.txt": (None, "c\n"),
    }
    told = apply_edits(tree, [diff_of(files)], "hello")
    assert told == ["edit patches/x.patch: 3 changed (upstream #1)"]
    assert (tree / "a.txt").read_text() == TEN.replace("line 3", "three")
    assert not (tree / "sub/b.txt").exists()
    assert (tree / "new/c.txt").read_text() == "c\n"


def test_a_new_program_can_be_run(tree: Path) -> None:
    text = (
        "diff --git a/run b/run\nnew file mode 100755\nindex 0000000..1111111\n"
        "--- /dev/null\n+++ b/run\n@@ -0,0 +1 @@\n+#!/bin/sh\n"
    )
    apply_edits(tree, [edit("", diff="x.patch", patch=text)], "hello")
    assert (tree / "run").stat().st_mode & 0o111


def test_lines_above_may_have_moved_it(tree: Path) -> None:
    moved = "new\n" * 40 + TEN
    (tree / "a.txt").write_text(moved)
    apply_edits(tree, [diff_of({"a.txt": (TEN, TEN.replace("line 5", "five"))})], "hello")
    assert (tree / "a.txt").read_text() == moved.replace("line 5", "five")


def test_a_context_that_is_only_near_is_refused_with_the_nearest_line(tree: Path) -> None:
    before = TEN.replace("line 5", "line  5")
    with pytest.raises(PatchError, match=r"does not apply to a\.txt") as caught:
        apply_edits(tree, [diff_of({"a.txt": (before, before.replace("line  5", "five"))})], "hello")
    assert "6: line 5" in caught.value.detail
    assert (tree / "a.txt").read_text() == TEN


def test_a_diff_of_which_one_file_fails_changes_none(tree: Path) -> None:
    files: dict[str, tuple[str | None, str | None]] = {
        "a.txt": (TEN, TEN.replace("line 3", "three")),
        "sub/b.txt": ("c\n", "d\n"),
    }
    with pytest.raises(PatchError, match=r"does not apply to sub/b\.txt"):
        apply_edits(tree, [diff_of(files)], "hello")
    assert (tree / "a.txt").read_text() == TEN


def test_a_diff_that_is_there_in_part_is_told_apart(tree: Path) -> None:
    files: dict[str, tuple[str | None, str | None]] = {
        "a.txt": (TEN, TEN.replace("line 3", "three")),
        "sub/b.txt": ("c\n", "b\n"),
    }
    with pytest.raises(PatchError, match="applies only in part"):
        apply_edits(tree, [diff_of(files, absorbed=">=0")], "hello", "1.0")


def test_lines_that_are_added_to_a_file_that_has_them_are_there_already(tree: Path) -> None:
    after = TEN.replace("line 5\n", "line 5\nmore\n")
    (tree / "a.txt").write_text(after)
    with pytest.raises(PatchError, match="the tree already contains the change"):
        apply_edits(tree, [diff_of({"a.txt": (TEN, after)})], "hello")


@pytest.mark.parametrize(
    "name", ["../outside", "sub/../../outside", "link/outside", "/outside", "sub/../../../outside"]
)
def test_a_diff_never_touches_a_path_outside_of_the_tree(tree: Path, name: str) -> None:
    outside = tree.parent / "outside"
    outside.write_text("b\n")
    (tree / "link").symlink_to(tree.parent)
    for files in (
        {"a.txt": (TEN, "x\n"), name: ("b\n", "c\n")},
        {"a.txt": (TEN, "x\n"), name: (None, "c\n")},
    ):
        with pytest.raises(PatchError, match=r"points outside|refused"):
            apply_edits(tree, [diff_of(files)], "hello")  # type: ignore[arg-type]
        assert outside.read_text() == "b\n"
        assert (tree / "a.txt").read_text() == TEN


def test_absolute_paths_are_refused() -> None:
    with pytest.raises(PatchError, match="refused"):
        parse_diff("--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n", "x.patch")


@each(
    "text",
    [
        "",
        "only words\n",
        "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+b\n",
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n?a\n",
        "--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n",
        "diff --git a/f b/g\nrename from f\nrename to g\n",
        "diff --git a/f b/f\nGIT binary patch\nliteral 1\n",
    ],
)
def test_what_is_no_diff_of_text_is_refused(text: str) -> None:
    with pytest.raises(PatchError, match=r"x\.patch is not a unified diff"):
        parse_diff(text, "x.patch")


def test_a_change_of_mode_is_refused_and_not_left_out_silently() -> None:
    mode = "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n"
    for text in (mode, f"--- a/g\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n{mode}"):
        with pytest.raises(PatchError) as refused:
            parse_diff(text, "x.patch")
        assert "changes a file's mode" in refused.value.cause
        assert "chmod" in refused.value.next_step


words = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "-- x\n", "++ y\n"]), max_size=12)


@settings(max_examples=150, deadline=None)
@given(before=words, after=words, ends=st.booleans())
def test_a_diff_leads_from_one_text_to_the_other_and_then_is_there(
    before: list[str], after: list[str], ends: bool
) -> None:
    one, other = "".join(before), "".join(after) + ("" if ends else "end")
    if one == other:
        return
    (part,) = parse_diff(patch_text({"f": (one, other)}), "x.patch")
    done = apply_hunks(part, one)
    assert (done.text, done.failed) == (other, None)
    assert done.changed == len(part.hunks)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_it_is_what_patch_makes_of_it(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("patch")
    before = [f"line {number}\n" for number in range(30)]
    after = [line for line in before if data.draw(st.integers(0, 9)) or "0" in line]
    for at in data.draw(st.lists(st.integers(0, len(after)), max_size=3)):
        after.insert(at, "new\n")
    if before == after:
        return
    text = patch_text({"f": ("".join(before), "".join(after))})
    (folder / "f").write_text("".join(before))
    (folder / "x.patch").write_text(text)
    subprocess.run(["patch", "-p1", "-i", "x.patch"], cwd=folder, check=True, capture_output=True)
    (part,) = parse_diff(text, "x.patch")
    assert apply_hunks(part, "".join(before)).text == (folder / "f").read_text()


@each("name", [".git/config", "sub/.git", "sub/.GIT/hooks/pre-commit", ".git./config", "git~1/x"])
def test_a_diff_that_touches_a_git_folder_is_refused(name: str) -> None:
    text = f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+[core]\n"
    with pytest.raises(PatchError, match="it touches") as caught:
        parse_diff(text, "p")
    assert "git folder" in caught.value.cause


def test_names_that_only_begin_as_git_does_are_fine() -> None:
    for name in (".gitignore", ".github/workflows/x", "git/config", ".gitattributes"):
        text = f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n"
        assert [one.name for one in parse_diff(text, "p")] == [name]


@pytest.mark.parametrize("mode", ["120000", "160000"])
def test_links_and_inner_repositories_are_no_text(mode: str) -> None:
    text = f"diff --git a/x b/x\nnew file mode {mode}\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+/etc\n"
    with pytest.raises(PatchError, match="not a unified diff"):
        parse_diff(text, "p")
