"""Patch series of distributions: applied for real, and an error when one is without effect."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest

from rocbase.errors import PatchError
from rocwheel_samples.trees import write_tree
from rocwright.sources.patching.series import apply_series, lay_packaging


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


def test_a_series_is_applied_in_order(tree: Path, patches: Path) -> None:
    before = (tree / "src/a.c").read_text()
    (patches / "1.patch").write_text(patch_of("src/a.c", before, before.replace("two", "2")))
    (patches / "2.patch").write_text(
        patch_of("src/a.c", before.replace("two", "2"), before.replace("two", "II"))
    )
    told = apply_series(tree, [patches / "1.patch", patches / "2.patch"], "hello")
    assert (tree / "src/a.c").read_text() == before.replace("two", "II")
    assert told == ["patch 1.patch: 1 file changed", "patch 2.patch: 1 file changed"]


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


def test_a_patch_that_is_a_script_for_an_editor_is_refused(tree: Path, patches: Path) -> None:
    """patch starts ed for it, whose commands start others."""
    patch = patches / "ed.patch"
    patch.write_text("--- a/file\n+++ b/file\n1337a\n1,112d\n!touch ran\n.\n")
    with pytest.raises(PatchError, match="script for an editor"):
        apply_series(tree, [patch], "hello")


@pytest.mark.parametrize("command", ["1c ", "1c\t", "1i", "1s/.//", "  1c", "X1c"])
def test_no_form_of_a_script_for_an_editor_starts_one(
    tree: Path, patches: Path, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(tmp_path / "bin", {"ed": f"#!/bin/sh\ntouch {tmp_path}/ran\n"})
    (tmp_path / "bin/ed").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    (patches / "ed.patch").write_text(f"--- a/README\n+++ b/README\n{command}\ntext\n.\n")
    with pytest.raises(PatchError):
        apply_series(tree, [patches / "ed.patch"], "hello")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", [".git/config", "src/.GIT/hooks/x", ".git"])
def test_a_patch_that_makes_a_git_folder_is_refused(tree: Path, patches: Path, name: str) -> None:
    (patches / "1.patch").write_text(f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+[core]\n")
    with pytest.raises(PatchError, match=r"1\.patch is refused: it touches a git folder"):
        apply_series(tree, [patches / "1.patch"], "hello")


@pytest.fixture
def packaging(tmp_path: Path) -> Path:
    folder = write_tree(tmp_path / "debian", {"headers-1.2/it.h": "int it;\n", "rules": "build:\n"})
    (folder / "headers").symlink_to("headers-1.2")
    return folder


def test_folders_of_the_packaging_are_laid_under_debian(tree: Path, packaging: Path) -> None:
    told = lay_packaging(tree, packaging, ["headers"])
    assert (tree / "debian/headers/it.h").read_text() == "int it;\n"
    assert not (tree / "debian/headers").is_symlink()
    assert not (tree / "debian/rules").exists()
    assert told == ["folder debian/headers: taken from the source package"]


@pytest.mark.parametrize("name", ["nothing", "rules", "out"])
def test_packaging_that_is_no_folder_of_the_source_is_refused(
    tree: Path, packaging: Path, tmp_path: Path, name: str
) -> None:
    write_tree(tmp_path / "outside", {"secret": "x"})
    (packaging / "out").symlink_to("../outside")
    with pytest.raises(PatchError, match=f"the source package has no folder debian/{name}"):
        lay_packaging(tree, packaging, [name])
    assert not (tree / "debian").exists()


def test_packaging_goes_through_no_link_that_a_patch_made(
    tree: Path, patches: Path, packaging: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    link = "diff --git a/debian b/debian\nnew file mode 120000\n--- /dev/null\n+++ b/debian\n"
    link += f"@@ -0,0 +1 @@\n+{tmp_path}/outside\n\\ No newline at end of file\n"
    (patches / "1.patch").write_text(link + patch_of("README", "hello\n", "bye\n"))
    apply_series(tree, [patches / "1.patch"], "hello")
    with pytest.raises(PatchError, match="outside the source tree"):
        lay_packaging(tree, packaging, ["headers"])
    assert not any((tmp_path / "outside").iterdir())
