"""A step fails, its tree is opened and mended, the change is saved, and the build goes through."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from samples.project import make_sources, open_project, put_roots
from tests.conftest import Command
from tests.sources.patching.making import Git

from rocwright.execution.workspace import Workspace
from rocwright.home import Home
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import read_lock, write_lock, write_request
from rocwright.sources.patching.commits import commit_id, tree_id
from rocwright.store.local import LocalStore
from rocwright.store.model import Record, records

RECIPE = {
    "alpha": {
        "kind": "archive",
        "run": ["grep -q '^mended' file", "cat file made > $OUT/alpha-1.0.tar.gz"],
        "output": [{"name": "archive", "pattern": "alpha-*.tar.gz"}],
        "prepare": ["sed 's/source/work/' file > made", "echo prepared >> file"],
        "edit": [
            {"file": "file", "regex": r"\Athe", "with": "The", "why": "a sentence begins so"},
            {"file": "made", "regex": r"\AThe", "with": "THE", "phase": "prepared", "why": "it shouts"},
        ],
    }
}


@pytest.fixture
def catalog(tmp_path: Path, home: Home, engine: str, tiny_root: Path) -> Path:
    """A project in the folder of the command, with a catalog of the user's own and a root in the store."""
    make_sources(tmp_path / "sources", RECIPE)
    put_roots(open_project(tmp_path / "sources", home.path), tiny_root)
    lock = read_lock(tmp_path / "sources/rocwright.lock")
    write_request(tmp_path / "project/rocwright.toml", lock.request)
    write_lock(tmp_path / "project/rocwright.lock", lock)
    return tmp_path / "sources/catalog"


def tree_of(home: Home, catalog: Path, step: str = "alpha") -> Path:
    project = open_project(catalog.parent, home.path)
    found = next(one for one in make_plan(project.locked, project.catalog).steps if one.name == step)
    return Workspace.of(home, found.key).source


def records_by_step(home: Home) -> dict[str, Record]:
    return {one.step: one for one in records(LocalStore(home.store))}


def test_a_failed_step_is_mended_in_a_shell_saved_and_built(
    rocwright: Command, home: Home, catalog: Path, engine: str
) -> None:
    env = {"ROCWRIGHT_CATALOG": str(catalog)}
    words = ("--engine", engine)
    failed = rocwright("build", *words, env=env)
    assert failed.returncode == 6, failed.stderr

    script = "sed -i '1s/^/mended: /' file; echo x > left-over"
    opened = rocwright("shell", "alpha", *words, "--command", script, env=env)
    assert opened.returncode == 0, opened.stderr
    saved = rocwright("patch", "save", "--message", "Mend the file", env=env)
    assert saved.returncode == 0, saved.stderr
    assert (catalog / "patches/alpha/0001-mend-the-file.patch").is_file()

    built = rocwright("build", *words, "--json", env=env)
    assert built.returncode == 0, built.stderr
    (artifact,) = json.loads(built.stdout)["artifacts"]
    text = Path(artifact["path"]).read_text()
    assert text.startswith("mended: The source of alpha\n")
    assert "THE work of alpha" in text


def test_the_tree_has_the_builds_commits_and_they_are_those_that_the_steps_recorded(
    rocwright: Command, home: Home, catalog: Path, engine: str
) -> None:
    env = {"ROCWRIGHT_CATALOG": str(catalog)}
    assert rocwright("build", "--engine", engine, env=env).returncode == 6
    opened = rocwright("shell", "alpha", "--engine", engine, "--command", "true", env=env)
    assert opened.returncode == 0, opened.stderr
    history = Git(tree_of(home, catalog))
    log = {subject: commit for commit, subject in history.log()}
    assert list(log) == ["upstream", "edits", "prepared", "edits of the prepared tree"]
    found = records_by_step(home)
    assert found["tree/alpha"].commits == {"upstream": log["upstream"], "edits": log["edits"]}
    assert found["prepared/alpha"].commits == {
        "prepared": log["prepared"],
        "edits of the prepared tree": log["edits of the prepared tree"],
    }
    assert history.uncommitted() == []
    last = commit_id(tree_id(history.tree), log["prepared"], "edits of the prepared tree")
    assert last == log["edits of the prepared tree"]


def test_commits_made_in_the_tree_are_saved_one_by_one(
    rocwright: Command, home: Home, catalog: Path, engine: str
) -> None:
    env = {"ROCWRIGHT_CATALOG": str(catalog)}
    rocwright("build", "--engine", engine, env=env)
    rocwright("shell", "alpha", "--engine", engine, "--command", "true", env=env)
    tree = tree_of(home, catalog)
    nobody = {f"GIT_{who}_{what}": "me" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    git = ["git", "-c", "safe.directory=*", "-C", str(tree)]
    for number, word in enumerate(("mended", "mended again")):
        lines = (tree / "file").read_text().splitlines(keepends=True)
        (tree / "file").write_text("".join([f"{word}\n", *lines[number:]]))
        subprocess.run([*git, "commit", "-qam", word], check=True, env=os.environ | nobody)
    saved = rocwright("patch", "save", "alpha", env=env)
    assert saved.returncode == 0, saved.stderr
    assert [Path(line).name for line in saved.stdout.splitlines()] == [
        "0001-mended.patch",
        "0002-mended-again.patch",
        "alpha.toml",
    ]
    nothing = rocwright("patch", "save", "alpha", env=env)
    assert nothing.returncode == 2
    assert "nothing was changed" in nothing.stderr
    assert rocwright("build", "--engine", engine, env=env).returncode == 0


def test_a_tree_that_is_not_open_and_a_missing_catalog_are_told(rocwright: Command, catalog: Path) -> None:
    env = {"ROCWRIGHT_CATALOG": str(catalog)}
    closed = rocwright("patch", "save", "alpha", env=env)
    assert closed.returncode == 2
    assert "no tree of alpha is open" in closed.stderr
    without = rocwright("patch", "save", "alpha", env={"ROCWRIGHT_CATALOG": ""})
    assert without.returncode == 2
    assert "catalog folder" in without.stderr


def test_a_build_spares_what_was_changed_in_a_shell_and_not_saved(
    rocwright: Command, home: Home, catalog: Path, engine: str
) -> None:
    env = {"ROCWRIGHT_CATALOG": str(catalog)}
    words = ("--engine", engine)
    assert rocwright("build", *words, env=env).returncode == 6
    assert rocwright("shell", "alpha", *words, "--command", "true", env=env).returncode == 0
    looked = rocwright("build", *words, env=env)
    assert looked.returncode == 6, "a tree that was only looked at is built anew"

    tree = tree_of(home, catalog)
    script = "sed -i '1s/^/mended: /' file; echo mine > new-file"
    assert rocwright("shell", "alpha", *words, "--command", script, env=env).returncode == 0
    refused = rocwright("build", *words, env=env)
    assert refused.returncode == 2
    assert "has unsaved changes" in refused.stderr
    assert "file, new-file" in refused.stderr
    assert "rocwright patch save alpha" in refused.stderr
    gone = rocwright("store", "gc", "--keep", "0", env=env)
    assert gone.returncode == 0, gone.stderr
    assert (tree / "new-file").read_text() == "mine\n"
    assert (tree / "file").read_text().startswith("mended: ")

    assert rocwright("build", *words, "--discard", env=env).returncode == 6
    assert not (tree / "new-file").exists()


def test_a_commit_in_the_tree_that_is_not_saved_is_spared_too(
    rocwright: Command, home: Home, catalog: Path, engine: str
) -> None:
    env = {"ROCWRIGHT_CATALOG": str(catalog)}
    words = ("--engine", engine)
    rocwright("build", *words, env=env)
    rocwright("shell", "alpha", *words, "--command", "true", env=env)
    tree = tree_of(home, catalog)
    (tree / "file").write_text("mended by hand\n")
    Git(tree).commit_changes("Mend it by hand")
    refused = rocwright("build", *words, env=env)
    assert refused.returncode == 2
    assert "Mend it by hand" in refused.stderr
    assert rocwright("patch", "save", "alpha", env=env).returncode == 0
    assert rocwright("build", *words, env=env).returncode == 0
