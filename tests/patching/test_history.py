"""Trees as git commits: ids that are the same everywhere, and what a user put on top of them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.making import write_tree

from rocwright.catalog.load import load_edits
from rocwright.errors import InputError, PatchError
from rocwright.patching.commits import commit_id, tree_id
from rocwright.patching.edits import apply_edits
from rocwright.patching.history import BASE, History
from rocwright.patching.save import save_changes


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
    history = History(tree)
    first = commit_id(tree_id(tree), "", "upstream")
    history.create()
    assert history.commit("upstream") == first
    (tree / "README").write_text("bye\n")
    second = commit_id(tree_id(tree), first, "edits")
    assert history.commit("edits") == second
    assert history.log() == [(first, "upstream"), (second, "edits")]


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
    history = History(tree)
    expected = commit_id(tree_id(tree), "", "upstream")
    history.create()
    assert history.commit("upstream") == expected


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
    history = History(folder)
    expected = commit_id(tree_id(folder), "", "upstream")
    history.create()
    assert history.commit("upstream") == expected


# what the user changed


@pytest.fixture
def history(tree: Path) -> History:
    history = History(tree)
    history.create()
    history.commit("upstream")
    history.mark()
    return history


def commit(tree: Path, message: str) -> None:
    """As a user does."""
    env = os.environ | {
        f"GIT_{who}_{what}": "me" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    for words in (("add", "--all"), ("commit", "-qm", message)):
        subprocess.run(["git", "-C", str(tree), *words], check=True, env=env, capture_output=True)


def save(history: History, folder: Path, carried: str = "", phase: str = "") -> list[Path]:
    return save_changes(history.changes(), "hello", "1.0", phase, folder, carried)


def test_commits_become_edits_that_make_the_same_tree(history: History, tmp_path: Path) -> None:
    tree, catalog = history.tree, tmp_path / "catalog"
    before = tmp_path / "before"
    subprocess.run(["cp", "-a", tree, before], check=True)
    (tree / "README").write_text("good\nday\n")
    commit(tree, "Say good day")
    (tree / "new").mkdir()
    (tree / "new/file.txt").write_text("new\n")
    (tree / "src.txt").unlink()
    commit(tree, "A new file: for more")
    written = save(history, catalog)
    assert [path.name for path in written] == [
        "0001-say-good-day.patch",
        "0002-a-new-file-for-more.patch",
        "hello.toml",
    ]
    edits = load_edits(catalog, "hello")
    assert [(edit.why, edit.versions) for edit in edits] == [
        ("Say good day", "==1.0"),
        ("A new file: for more", "==1.0"),
    ]
    apply_edits(before, edits, "hello", "1.0")
    assert tree_id(before) == tree_id(tree)


def test_the_edits_of_the_catalog_below_are_kept_and_later_ones_are_added(
    history: History, tmp_path: Path
) -> None:
    carried = '# a word\n[[edit]]\nfile = "f"\nliteral = "a"\nwith = "b"\nwhy = "y"\n'
    for word in ("one", "two"):
        (history.tree / "README").write_text(f"{word}\n")
        commit(history.tree, word)
        save(history, tmp_path / "catalog", carried, "prepared")
        history.mark()
    text = (tmp_path / "catalog/edits/hello.toml").read_text()
    assert text.startswith(carried)
    edits = load_edits(tmp_path / "catalog", "hello")
    assert [(edit.why, edit.phase) for edit in edits] == [("y", ""), ("one", "prepared"), ("two", "prepared")]
    assert [edit.diff for edit in edits[1:]] == [
        "patches/hello/0001-one.patch",
        "patches/hello/0002-two.patch",
    ]


def test_changes_without_a_commit_are_taken_with_a_message(history: History, tmp_path: Path) -> None:
    (history.tree / "README").write_text("bye\n")
    (history.tree / "left-by-the-build").write_text("x\n")
    assert history.uncommitted() == ["README"]
    history.commit_changes("Say bye")
    save(history, tmp_path)
    (edit,) = load_edits(tmp_path, "hello")
    assert edit.why == "Say bye"
    assert "left-by-the-build" not in edit.patch


def test_nothing_changed_is_said(history: History, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing is changed"):
        save(history, tmp_path / "catalog")
    assert not (tmp_path / "catalog").exists()


def test_what_is_no_text_is_refused_and_nothing_is_written(history: History, tmp_path: Path) -> None:
    (history.tree / "README").write_text("bye\n")
    commit(history.tree, "fine")
    (history.tree / "picture").write_bytes(bytes(range(256)))
    commit(history.tree, "a picture")
    with pytest.raises(PatchError, match="a picture is not a unified diff"):
        save(history, tmp_path / "catalog")
    assert not (tmp_path / "catalog").exists()


def test_a_history_that_was_rewritten_or_merged_is_refused(history: History, tmp_path: Path) -> None:
    tree = history.tree
    git = ["git", "-C", str(tree), "-c", "user.name=me", "-c", "user.email=me"]
    subprocess.run([*git, "checkout", "-q", "-b", "side"], check=True)
    (tree / "README").write_text("bye\n")
    commit(tree, "side")
    subprocess.run([*git, "checkout", "-q", "main"], check=True)
    (tree / "src.txt").write_text("x\n")
    commit(tree, "main")
    subprocess.run([*git, "merge", "-q", "side", "-m", "merged"], check=True, capture_output=True)
    with pytest.raises(PatchError, match="merge"):
        save(history, tmp_path / "catalog")
    subprocess.run([*git, "checkout", "-q", "--orphan", "other"], check=True)
    subprocess.run([*git, "commit", "-qm", "other"], check=True)
    with pytest.raises(PatchError, match="do not stand on"):
        save(history, tmp_path / "catalog")
    assert BASE.endswith("base")
