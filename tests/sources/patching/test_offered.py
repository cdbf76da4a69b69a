"""Patches of others against a tree and the edits of a recipe; nothing is written, nothing outside is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocwheel_samples.trees import write_tree
from rocwright.model.edits import Edit
from rocwright.sources.patching.foreign import ForeignPatch
from rocwright.sources.patching.offered import Offered, PatchState, check_offered

TEXT = "".join(f"line {number}\n" for number in range(30))
EDIT = Edit.model_validate({"file": "f.txt", "literal": "line 20", "with": "edited 20", "why": "a reason"})


def patch(
    name: str, before: str, after: str, *, file: str = "f.txt", number: int = 0, bare: bool = False
) -> ForeignPatch:
    """A patch of one line; `bare`: without a/ and b/."""
    one, two = ("", "") if bare else ("a/", "b/")
    head = f"--- {one}{file}\n+++ {two}{file}\n@@ -{number + 1},1 +{number + 1},1 @@\n"
    return ForeignPatch(name=name, text=f"{head}-{before}\n+{after}\n", strip=0 if bare else 1)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "tree", {"f.txt": TEXT})


def check(tree: Path, *patches: ForeignPatch, edits: tuple[Edit, ...] = ()) -> Offered:
    return check_offered(tree, patches, edits, ("gfx1151",))


def test_each_patch_stands_on_those_before_it_and_nothing_is_written(tree: Path) -> None:
    found = check(
        tree, patch("1", "line 3", "three"), patch("2", "three", "drei"), patch("3", "three", "trois")
    )
    assert [one.state for one in found.patches] == [PatchState.APPLIES, PatchState.APPLIES, PatchState.FAILS]
    assert not found.good
    assert (tree / "f.txt").read_text() == TEXT


def test_what_stands_there_instead_is_shown(tree: Path) -> None:
    (one,) = check(tree, patch("1", "line 33", "x", number=5)).patches
    assert "line 3" in one.files[0].near[1]


def test_a_patch_without_leading_parts_is_read_so(tree: Path) -> None:
    assert check(tree, patch("1", "line 3", "x", bare=True)).good


def test_an_edit_of_the_same_line_is_in_the_way(tree: Path) -> None:
    found = check(tree, patch("1", "line 20", "patched", number=20), edits=(EDIT,))
    assert found.patches[0].state is PatchState.APPLIES
    (overlap,) = found.overlaps
    assert overlap.breaks
    assert "after the patches the edit no longer applies" in overlap.what
    assert "after the edits hunk 1 of 1: fails" in overlap.what
    assert not found.good


def test_a_patch_that_makes_the_edits_change_is_told(tree: Path) -> None:
    (overlap,) = check(tree, patch("1", "line 20", "edited 20", number=20), edits=(EDIT,)).overlaps
    assert "make the edit's change already" in overlap.what


def test_an_edit_elsewhere_in_the_file_is_told_and_breaks_nothing(tree: Path) -> None:
    found = check(tree, patch("1", "line 3", "x", number=3), edits=(EDIT,))
    assert [one.breaks for one in found.overlaps] == [False]
    assert found.good


def test_a_file_that_is_not_there_and_other_line_ends_are_the_cause(tree: Path) -> None:
    (tree / "crlf.txt").write_bytes(b"line 3\r\n")
    one, two = check(
        tree, patch("1", "a", "b", file="gone"), patch("2", "line 3", "b", file="crlf.txt")
    ).patches
    assert one.files[0].cause == "there is no such file in the tree"
    assert two.files[0].cause == "the file has CRLF line ends, the patch LF"


@pytest.mark.parametrize("file", ["../secret", "x/../../secret", "link/secret", ".git/hooks/pre-commit"])
def test_a_patch_never_reads_or_names_a_file_outside_of_the_tree(tree: Path, file: str) -> None:
    (tree.parent / "secret").write_text("token\n")
    (tree / "link").symlink_to(tree.parent)
    found = check(tree, patch("1", "token", "x", file=file))
    assert found.patches[0].state is PatchState.REFUSED
    assert found.patches[0].next_step
    assert not found.patches[0].files


@pytest.mark.parametrize(
    "text", ["", "no diff", "--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n a\n", "GIT binary patch\n"]
)
def test_what_is_no_diff_is_refused_with_a_reason(tree: Path, text: str) -> None:
    (one,) = check(tree, ForeignPatch(name="x", text=text)).patches
    assert one.state is PatchState.REFUSED
    assert one.why


def test_a_patch_in_another_encoding_applies_to_bytes(tree: Path) -> None:
    (tree / "f.txt").write_bytes(b"caf\xe9\nx\n")
    assert check(tree, patch("1", "caf\xe9", "tea")).good
