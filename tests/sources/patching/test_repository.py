"""Trees as git commits, written without git: ids are the same everywhere, and git reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sources.patching.making import Git

from rocwheel_samples.trees import write_tree
from rocwright.sources.patching.commits import commit_id, tree_id
from rocwright.sources.patching.repository import ATTRIBUTES, BASE, Repository


def start(git: Git) -> None:
    """An empty repository, made by git itself."""
    git("init", "--quiet", "--initial-branch=main", "--template=")
    (git.tree / ".git/info").mkdir()
    (git.tree / ".git/info/attributes").write_text(ATTRIBUTES)


def commit_all(git: Git, message: str) -> str:
    """Commit everything; gives the id."""
    git("add", "--all", "--force", ".")
    git("commit", "--quiet", "--allow-empty", "--message", message)
    return git("rev-parse", "HEAD").strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "README": "hello\n",
        "src/a.c": "int a;\n",
        "src.txt": "sorted before src/\n",
        ".gitignore": "*.c\nbuild/\n",
        ".gitattributes": "* text eol=crlf ident\n",
        "build/kept": "$Id$\n",
    }
    folder = write_tree(tmp_path / "tree", files)
    (folder / "crlf").write_bytes(b"one\r\ntwo\r\n")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    (folder / "link").symlink_to("src/a.c")
    (folder / "empty").mkdir()
    return folder


def test_ids_are_those_that_git_gives(tree: Path) -> None:
    first = commit_id(tree_id(tree), "", "upstream")
    git = Git(tree)
    start(git)
    assert commit_all(git, "upstream") == first
    (tree / "README").write_text("bye\n")
    second = commit_id(tree_id(tree), first, "edits")
    assert commit_all(git, "edits") == second
    assert git.log() == [(first, "upstream"), (second, "edits")]


def test_git_finds_what_was_written_whole_and_the_tree_unchanged(tree: Path, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "made")
    first = repository.commit(tree, "upstream")
    (tree / "README").write_text("bye\n")
    (tree / ("long-" * 40 + "name")).write_text("x\n")
    (tree / "no-\udcff-text").write_text("x\n")
    second = repository.commit(tree, "edits")
    repository.finish()
    (tmp_path / "made").rename(tree / ".git")
    git = Git(tree)
    assert git("fsck", "--strict", "--full") == ""
    assert git.log() == [(first, "upstream"), (second, "edits")]
    assert git("status", "--porcelain", "--ignored") == ""
    assert git("rev-parse", "HEAD", BASE).split() == [second, second]
    (tree / "README").write_text("hello\n")
    (tree / "src/a.c").unlink()
    assert git.uncommitted() == ["README", "src/a.c"]
    (tree / "run").chmod(0o644)
    assert "run" in git.uncommitted()


def test_a_tree_without_files_is_a_commit_too(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    repository = Repository(tmp_path / "made")
    repository.commit(tmp_path / "tree", "upstream")
    repository.finish()
    (tmp_path / "made").rename(tmp_path / "tree/.git")
    git = Git(tmp_path / "tree")
    assert git("fsck", "--strict") == ""
    assert git("status", "--porcelain") == ""


def test_an_id_is_written_down_here() -> None:
    """It changes only with what a commit is made of, and then every record of a tree tells another id."""
    assert commit_id("4b825dc642cb6eb9a060e54bf8d69288fbee4904", "", "upstream") == (
        "79e7d8f1366c50dbfb7755473466d7038a44a639"
    )


def test_settings_of_the_machine_are_in_no_commit(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = (
        "[user]\nname = somebody\n[core]\nautocrlf = true\nexcludesFile = /tmp/x\n[commit]\ngpgSign = true\n"
    )
    (tmp_path / "gitconfig").write_text(settings)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2001-01-01T00:00:00")
    expected = commit_id(tree_id(tree), "", "upstream")
    assert Repository(tmp_path / "made").commit(tree, "upstream") == expected
    start(Git(tree))
    assert commit_all(Git(tree), "upstream") == expected


@settings(max_examples=20, deadline=None)
@given(
    files=st.dictionaries(
        st.from_regex(r"[a-c]{1,2}(\.[a-c]|/[a-c]{1,2}|/[a-c]/[a-c])?", fullmatch=True),
        st.binary(max_size=8),
        min_size=1,
        max_size=8,
    )
)
def test_any_tree_has_the_id_that_git_gives(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    for name, data in files.items():
        path = folder / name
        if any(parent.is_file() for parent in path.parents) or path.is_dir():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    expected = commit_id(tree_id(folder), "", "upstream")
    git = Git(folder)
    start(git)
    assert commit_all(git, "upstream") == expected
