"""What a user put on top of the build's commits, asked of git in a sandbox, and kept as edits."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop, put_root
from tests.making import make_tiny_root

from rocbase.errors import InputError, PatchError, SandboxError
from rocwheel_samples.trees import write_tree
from rocwright.catalog.load import load_edits
from rocwright.execution.changes import changes, give_repository, mark_saved, remember
from rocwright.execution.context import Context
from rocwright.execution.exec_step import resolve_inputs
from rocwright.execution.run import lay_out
from rocwright.execution.stages import Stage
from rocwright.execution.workspace import Workspace
from rocwright.home import Home
from rocwright.model.steps import Step
from rocwright.sandbox.untrusted import Untrusted
from rocwright.sources.patching.commits import tree_id
from rocwright.sources.patching.edits import apply_edits
from rocwright.sources.patching.history import Changes, read_changes
from rocwright.sources.patching.repository import BASE
from rocwright.sources.patching.save import save_changes
from rocwright.store.local import LocalStore

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

    def __init__(self, workshop: Workshop, before: Callable[[Path], object] = lambda _: None) -> None:
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
        before(self.tree)
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
    with pytest.raises(InputError, match="nothing was changed"):
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
    with pytest.raises(PatchError, match="are not based on"):
        save(shell, tmp_path / "catalog")
    assert BASE.endswith("base")


def test_git_of_the_steps_own_root_is_asked_where_it_has_one(
    home: Home, store: LocalStore, engine: str, tmp_path: Path
) -> None:
    (tmp_path / "root").mkdir()
    make_tiny_root(tmp_path / "root.tar.zst", tmp_path / "root", more=("git",))
    shell = Shell(Workshop(home, store, engine, tmp_path, put_root(store, tmp_path / "root.tar.zst")))
    (shell.tree / "README").write_text("bye\n")
    (change,) = shell.changes("Say bye").commits
    assert change.subject == "Say bye"
    assert "+bye\n" in change.diff


def test_what_the_step_left_as_git_is_put_aside_and_said(workshop: Workshop) -> None:
    shell = Shell(workshop, lambda tree: (tree / ".git").write_text("gitdir: /elsewhere"))
    assert (shell.tree / ".git").is_dir()
    (aside,) = shell.workspace.build.glob("*.git")
    assert aside.read_text() == "gitdir: /elsewhere"
    assert f"the .git that hello left is now /build/{aside.name}" in workshop.lines


@pytest.mark.parametrize("link", [True, False])
def test_a_tree_that_is_no_folder_gets_no_repository(
    workshop: Workshop, tmp_path: Path, *, link: bool
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def replace(tree: Path) -> None:
        tree.rename(tree.with_name("real"))
        if link:
            tree.symlink_to(elsewhere)
        else:
            tree.touch()

    with pytest.raises(SandboxError, match="hello left no tree") as caught:
        Shell(workshop, replace)
    assert "--discard" in caught.value.next_step
    assert list(elsewhere.iterdir()) == []


def test_what_git_is_told_to_run_in_the_tree_runs_in_the_sandbox_alone(shell: Shell, tmp_path: Path) -> None:
    marker = tmp_path / "owned"
    with (shell.tree / ".git/config").open("a") as config:
        config.write(f'[core]\n\tfsmonitor = "touch /build/ran {marker}; false"\n')
        config.write(f'[diff]\n\texternal = "touch {marker}; false"\n')
    (shell.tree / "README").write_text("bye\n")
    (change,) = shell.changes("Say bye").commits
    assert "+bye" in change.diff
    assert (shell.workspace.build / "ran").exists(), "the planted command did run, in the sandbox"
    assert not marker.exists()


@pytest.mark.parametrize("name", ["0.diff", "0.subject", "head", "commits", "uncommitted"])
@pytest.mark.parametrize("kind", ["link", "fifo", "huge"])
def test_what_git_left_that_is_no_plain_file_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    texts = {"head": "1" * 40, "stands": "", "merges": "", "commits": "1" * 40, "uncommitted": ""}
    write_tree(tmp_path / "out", texts | {"0.subject": "x", "0.diff": "x"})
    (tmp_path / "out" / name).unlink()
    match kind:
        case "link":
            (tmp_path / "out" / name).symlink_to("/etc/passwd")
        case "fifo":
            os.mkfifo(tmp_path / "out" / name)
        case _:
            with (tmp_path / "out" / name).open("wb") as file:
                file.truncate(1024**3)
    with pytest.raises(SandboxError, match=f"hello left .* as {name}"):
        read_changes(Untrusted(tmp_path / "out", "hello"))


def test_a_repository_within_the_tree_is_not_kept(shell: Shell, tmp_path: Path) -> None:
    write_tree(shell.tree / "inner", {"file": "x\n"})
    who = ("-c", "user.name=x", "-c", "user.email=x")
    for words in (("init", "-q"), ("add", "file"), (*who, "commit", "-qm", "x")):
        subprocess.run(["git", *SAFE, "-C", shell.tree / "inner", *words], check=True)
    commit(shell.tree, "a repository within")
    with pytest.raises(PatchError, match="a repository within is not a unified diff"):
        save(shell, tmp_path / "catalog")
    assert not (tmp_path / "catalog").exists()


def test_text_that_is_not_utf8_is_refused_and_nothing_is_written(shell: Shell, tmp_path: Path) -> None:
    (shell.tree / "latin").write_bytes(b"caf\xe9\n")  # codespell:ignore caf
    commit(shell.tree, "a word")
    with pytest.raises(PatchError, match="a word is not a unified diff") as caught:
        save(shell, tmp_path / "catalog")
    assert "not UTF-8" in caught.value.cause
