"""What a user put on top of the build's commits, asked of git in a sandbox, and kept as edits."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.build.conftest import Workshop

from rocwright.build.changes import changes, give_repository, mark_saved, remember
from rocwright.build.context import Context
from rocwright.build.exec_step import resolve_inputs
from rocwright.build.run import lay_out
from rocwright.build.stages import Stage
from rocwright.build.workspace import Workspace
from rocwright.catalog.load import load_edits
from rocwright.errors import InputError, PatchError
from rocwright.patching.commits import tree_id
from rocwright.patching.edits import apply_edits
from rocwright.patching.history import Changes
from rocwright.patching.repository import BASE
from rocwright.patching.save import save_changes
from rocwright.plan.model import Step

FILES = {
    "README": "hello\n",
    "src/a.c": "int a;\n",
    "src.txt": "sorted before src/\n",
    ".gitignore": "*.c\nbuild/\n",
    ".gitattributes": "* text eol=crlf ident\n",
    "crlf": "one\r\ntwo\r\n",
    "build/kept": "$Id$\n",
}


SAFE = ("-c", "safe.directory=*")


class Shell:
    """A step's tree as a shell opens it."""

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop
        self.step: Step = workshop.step("false", tree=workshop.tree("hello", **FILES))
        self.workspace = Workspace.of(workshop.home, self.step.key)
        self.tree = self.workspace.source
        self.workspace.create()
        inputs = resolve_inputs(workshop.store, self.step)
        lay_out(
            Context(
                store=workshop.store,
                home=workshop.home,
                workspace=self.workspace,
                inputs=inputs,
                on_line=workshop.lines.append,
            )
        )
        stages = [Stage("upstream", tuple(inputs["src"]))]
        made = give_repository(self.step, self.workspace, stages, workshop.store, workshop.lines.append)
        remember(self.step, self.workspace, made)

    def changes(self, message: str = "") -> Changes:
        shop = self.workshop
        return changes(self.step, shop.store, shop.home, message, shop.lines.append)

    def mark(self) -> None:
        shop = self.workshop
        mark_saved(self.step, shop.store, shop.home, self.changes(), shop.lines.append)


@pytest.fixture
def shell(workshop: Workshop) -> Shell:
    return Shell(workshop)


def commit(tree: Path, message: str) -> None:
    """As a user does."""
    env = os.environ | {
        f"GIT_{who}_{what}": "me" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    for words in (("add", "--all"), ("commit", "-qm", message)):
        subprocess.run(["git", *SAFE, "-C", str(tree), *words], check=True, env=env, capture_output=True)


def save(shell: Shell, folder: Path, carried: str = "", phase: str = "") -> list[Path]:
    return save_changes(shell.changes().commits, "hello", "1.0", phase, folder, carried)


def test_commits_become_edits_that_make_the_same_tree(shell: Shell, tmp_path: Path) -> None:
    tree, catalog = shell.tree, tmp_path / "catalog"
    before = tmp_path / "before"
    subprocess.run(["cp", "-a", tree, before], check=True)
    (tree / "README").write_text("good\nday\n")
    commit(tree, "Say good day")
    (tree / "new").mkdir()
    (tree / "new/file.txt").write_text("new\n")
    (tree / "src.txt").unlink()
    commit(tree, "A new file: for more")
    written = save(shell, catalog)
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
    shell: Shell, tmp_path: Path
) -> None:
    carried = '# a word\n[[edit]]\nfile = "f"\nliteral = "a"\nwith = "b"\nwhy = "y"\n'
    for word in ("one", "two"):
        (shell.tree / "README").write_text(f"{word}\n")
        commit(shell.tree, word)
        save(shell, tmp_path / "catalog", carried, "prepared")
        shell.mark()
    text = (tmp_path / "catalog/edits/hello.toml").read_text()
    assert text.startswith(carried)
    edits = load_edits(tmp_path / "catalog", "hello")
    assert [(edit.why, edit.phase) for edit in edits] == [("y", ""), ("one", "prepared"), ("two", "prepared")]
    assert [edit.diff for edit in edits[1:]] == [
        "patches/hello/0001-one.patch",
        "patches/hello/0002-two.patch",
    ]


def test_changes_without_a_commit_are_taken_with_a_message(shell: Shell, tmp_path: Path) -> None:
    (shell.tree / "README").write_text("bye\n")
    (shell.tree / "left-by-the-build").write_text("x\n")
    assert shell.changes().uncommitted == ("README",)
    assert shell.changes("Say bye").uncommitted == ()
    save(shell, tmp_path)
    (edit,) = load_edits(tmp_path, "hello")
    assert edit.why == "Say bye"
    assert "left-by-the-build" not in edit.patch


def test_nothing_changed_is_said(shell: Shell, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing is changed"):
        save(shell, tmp_path / "catalog")
    assert not (tmp_path / "catalog").exists()


def test_what_is_no_text_is_refused_and_nothing_is_written(shell: Shell, tmp_path: Path) -> None:
    (shell.tree / "README").write_text("bye\n")
    commit(shell.tree, "fine")
    (shell.tree / "picture").write_bytes(bytes(range(256)))
    commit(shell.tree, "a picture")
    with pytest.raises(PatchError, match="a picture is not a unified diff"):
        save(shell, tmp_path / "catalog")
    assert not (tmp_path / "catalog").exists()


def test_a_history_that_was_rewritten_or_merged_is_refused(shell: Shell, tmp_path: Path) -> None:
    tree = shell.tree
    git = ["git", *SAFE, "-C", str(tree), "-c", "user.name=me", "-c", "user.email=me"]
    subprocess.run([*git, "checkout", "-q", "-b", "side"], check=True)
    (tree / "README").write_text("bye\n")
    commit(tree, "side")
    subprocess.run([*git, "checkout", "-q", "main"], check=True)
    (tree / "src.txt").write_text("x\n")
    commit(tree, "main")
    subprocess.run([*git, "merge", "-q", "side", "-m", "merged"], check=True, capture_output=True)
    with pytest.raises(PatchError, match="merge"):
        save(shell, tmp_path / "catalog")
    subprocess.run([*git, "checkout", "-q", "--orphan", "other"], check=True)
    subprocess.run([*git, "commit", "-qm", "other"], check=True)
    with pytest.raises(PatchError, match="do not stand on"):
        save(shell, tmp_path / "catalog")
    assert BASE.endswith("base")
