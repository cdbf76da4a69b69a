"""What a user made in a tree is told by a note that no step can write."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwheel_samples.hostile_files import make_deep
from rocwheel_samples.trees import write_tree
from rocwright.execution import opened
from rocwright.execution.workspace import Workspace, spare_the_users_work
from rocwright.home import Home
from rocwright.model.steps import RunAction, Step
from rocwright.sources.bases.roots import remove_tree

BASE = "1" * 40


@pytest.fixture
def step() -> Step:
    return Step(name="hello", component="hello", action=RunAction(commands=("true",), outputs=()))


@pytest.fixture
def workspace(home: Home, step: Step) -> Workspace:
    """A tree in which a shell was opened: two files of the source, one that the build made."""
    found = Workspace.of(home, step.key)
    found.create()
    write_tree(found.source, {"a": "1", "sub/b": "22", "made": "x", ".git/HEAD": "ref: refs/heads/main"})
    (found.source / "link").symlink_to("a")
    note(found)
    return found


def note(workspace: Workspace, left: tuple[str, ...] = ("made",)) -> None:
    files = opened.look(workspace.build, "hello")
    opened.write(workspace.path, opened.Opened(step="hello", base=BASE, files=files, left=left))


def odd(folder: Path) -> Path:
    """A file whose name is no text."""
    return Path(os.fsdecode(os.fsencode(folder) + b"/\xff"))


def test_a_tree_that_was_only_looked_at_holds_nothing_unsaved(workspace: Workspace) -> None:
    assert workspace.is_open
    assert workspace.unsaved() == []
    (workspace.source / ".git/index").write_text("what git writes when it looks")
    (workspace.source / "empty").mkdir()
    assert workspace.unsaved() == []


def _same_size_and_time(tree: Path) -> None:
    before = (tree / "a").stat()
    (tree / "a").write_text("2")
    os.utime(tree / "a", ns=(before.st_atime_ns, before.st_mtime_ns))


def _link_elsewhere(tree: Path) -> None:
    (tree / "link").unlink()
    (tree / "link").symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda tree: (tree / "a").write_text("one"), ["a"]),
        (_same_size_and_time, ["a"]),
        (lambda tree: (tree / "sub/b").chmod(0o755), ["sub/b"]),
        (lambda tree: (tree / "sub/b").unlink(), ["sub/b"]),
        (lambda tree: (tree / "made").unlink(), []),
        (lambda tree: (tree / "made").write_text("more"), ["made"]),
        (lambda tree: (tree / "new").write_text(""), ["new"]),
        (_link_elsewhere, ["link"]),
        (lambda tree: os.mkfifo(tree / "pipe"), ["pipe"]),
        (lambda tree: (tree / "x\x1b[31m").touch(), ["'x\\x1b[31m'"]),
        (lambda tree: (tree / "sub/.git").touch(), ["sub/.git"]),
        (lambda tree: odd(tree).touch(), ["'\\udcff'"]),
    ],
)
def test_what_is_not_as_it_was_is_told(
    workspace: Workspace, change: Callable[[Path], object], told: list[str]
) -> None:
    change(workspace.source)
    assert workspace.unsaved() == told


def test_a_name_that_is_no_text_can_lie_there_when_a_shell_is_opened(workspace: Workspace) -> None:
    odd(workspace.source).touch()
    note(workspace)
    assert workspace.unsaved() == []


def test_commits_are_told_by_the_log_of_the_shells_git(workspace: Workspace) -> None:
    who = "me <me> 1735689600 +0000"
    logs = workspace.source / ".git/logs"
    logs.mkdir()
    rows = [
        ("0" * 40, "2" * 40, "commit: Before"),
        ("2" * 40, BASE, "reset: moving to HEAD~1"),
        (BASE, "3" * 40, "commit: Mend \x1b[31mit"),
        ("3" * 40, "4" * 40, "checkout: moving from main to other"),
        ("4" * 40, "5" * 40, "commit (amend): And more"),
    ]
    text = "".join(f"{old} {new} {who}\t{what}\n" for old, new, what in rows)
    (logs / "HEAD").write_text(f"{text}no such row\n\n")
    assert workspace.unsaved() == ["Mend \N{REPLACEMENT CHARACTER}[31mit", "And more"]
    (logs / "HEAD").unlink()
    os.mkfifo(logs / "HEAD")
    assert workspace.unsaved() == []


def test_a_note_of_the_steps_own_is_none(workspace: Workspace, step: Step, home: Home) -> None:
    (workspace.path / opened.NOTE).unlink()
    for folder in (workspace.build, workspace.source, workspace.source / ".git", workspace.out):
        (folder / opened.NOTE).write_text("{}")
        (folder / "rocwright-opened.json").write_text("{}")
    assert not workspace.is_open
    assert workspace.unsaved() == []
    spare_the_users_work([step], home)


@pytest.mark.parametrize("text", ["", "{}", "[]", "\x00", '{"step": 1}'])
def test_a_damaged_note_spares_the_tree(workspace: Workspace, step: Step, home: Home, text: str) -> None:
    (workspace.path / opened.NOTE).write_text(text)
    with pytest.raises(InputError, match="has unsaved changes"):
        spare_the_users_work([step], home)
    spare_the_users_work([step], home, discard=True)
    assert not workspace.path.exists()


def _deep(tree: Path) -> None:
    tree.mkdir()
    make_deep(tree, 3000)


@pytest.mark.parametrize(
    "put", [lambda tree: tree.symlink_to("/"), lambda tree: None, lambda tree: tree.touch(), _deep]
)
def test_whatever_stands_for_the_tree_is_looked_at_without_following(
    workspace: Workspace, step: Step, home: Home, put: Callable[[Path], object]
) -> None:
    shutil.rmtree(workspace.source)
    put(workspace.source)
    assert workspace.unsaved(), "the files of the source are gone"
    spare_the_users_work([step], home, discard=True)
    assert not workspace.path.exists()
    remove_tree(home.work)


def test_what_was_saved_is_no_more_told_and_the_rest_is(workspace: Workspace) -> None:
    for name in ("a", "sub/b", "new"):
        (workspace.source / name).write_text("changed")
    (workspace.source / "link").unlink()
    opened.note_saved(workspace.path, workspace.build, "9" * 40, {"a", "link"})
    assert workspace.unsaved() == ["new", "sub/b"]
    found = opened.read(workspace.path)
    assert found is not None
    assert found.base == "9" * 40
