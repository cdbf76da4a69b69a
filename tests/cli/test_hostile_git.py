"""A step plants git metadata in its tree and fails: nothing that it names ever runs on the host."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from samples.project import make_sources, open_project, put_roots
from tests.conftest import Command
from tests.making import builtin, make_tiny_root, record_of

from rocwheel_samples.trees import write_tree
from rocwright.execution.workspace import Workspace
from rocwright.home import Home
from rocwright.model.steps import FetchAction, Input, Step, TreeAction
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import read_lock, write_lock, write_request
from rocwright.store.local import LocalStore
from rocwright.store.model import Output

CONFIG = """[core]
	repositoryformatversion = 0
	bare = false
	fsmonitor = {run}
	sshCommand = {run}
	hooksPath = {hooks}
	pager = {run}
	editor = {run}
[filter "evil"]
	clean = {run}
	smudge = {run}
	required = true
[diff]
	external = {run}
[diff "evil"]
	textconv = {run}
	command = {run}
[gpg]
	program = {run}
[commit]
	gpgSign = true
[alias]
	x = !{run}
[include]
	path = {config}
"""


class Attack:
    """What the step leaves; `marker` is a file on the host that is there once a planted command ran."""

    def __init__(self, folder: Path) -> None:
        self.marker = folder / "owned"
        self.repository = folder / "elsewhere.git"
        run = f'"touch {self.marker}; false"'
        config = CONFIG.format(run=run, hooks="/build/src/.hooks", config="/dev/null")
        git = ["git", "-c", "user.name=me", "-c", "user.email=me", "-C", str(folder / "planted")]
        subprocess.run(["git", "init", "--quiet", "--template=", str(folder / "planted")], check=True)
        subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "planted"], check=True)
        subprocess.run([*git, "update-ref", "refs/rocwright/base", "HEAD"], check=True)
        (folder / "planted/.git").rename(self.repository)
        (self.repository / "config").write_text(config)
        (self.repository / "rocwright-opened.json").write_text("{}")

    def commands(self, form: str) -> list[str]:
        """The commands of a step that plants `form` and fails."""
        hook = f"mkdir -p .hooks; printf '#!/bin/sh\\ntouch {self.marker}\\n' > .hooks/post-checkout"
        plant = {
            "folder": _written(self.repository, ".git"),
            "file": [f"echo 'gitdir: {self.repository}' > .git"],
            "link": [*_written(self.repository, ".planted"), "ln -s .planted .git"],
            "nested": [
                *_written(self.repository, "inner/.git"),
                "echo one > inner/file",
                f"mkdir other; echo 'gitdir: {self.repository}' > other/.git",
                "echo '{}' > opened.json",
            ],
        }[form]
        attributes = "echo '* filter=evil diff=evil' > .gitattributes"
        return [hook, attributes, *plant, "echo changed >> file", "grep -q '^mended' file"]


def _written(folder: Path, into: str) -> list[str]:
    """Commands that make a folder again without git, which the root lacks."""
    commands = [f"mkdir -p {into}/{path.relative_to(folder)}" for path in folder.rglob("*") if path.is_dir()]
    for path in folder.rglob("*"):
        if path.is_file():
            text = "".join(f"\\{byte:03o}" for byte in path.read_bytes())
            commands.append(f"printf '{text}' > {into}/{path.relative_to(folder)}")
    return commands


FORMS = ("folder", "file", "link", "nested")


def planted(folder: Path, home: Home, root: Path, attack: Attack, form: str) -> Path:
    """A project whose one step plants `form`; gives its catalog."""
    recipe = {
        "kind": "archive",
        "run": attack.commands(form),
        "output": [{"name": "archive", "pattern": "alpha-*.tar.gz"}],
    }
    make_sources(folder / "sources", {"alpha": recipe})
    put_roots(open_project(folder / "sources", home.path), root)
    lock = read_lock(folder / "sources/rocwright.lock")
    write_request(folder / "project/rocwright.toml", lock.request)
    write_lock(folder / "project/rocwright.lock", lock)
    return folder / "sources/catalog"


def tree_of(home: Home, catalog: Path) -> Path:
    project = open_project(catalog.parent, home.path)
    found = next(one for one in make_plan(project.locked, project.catalog).steps if one.name == "alpha")
    return Workspace.of(home, found.key).source


@pytest.fixture
def attack(tmp_path: Path) -> Attack:
    return Attack(tmp_path)


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(form, marks=[pytest.mark.real, pytest.mark.nightly] if form in ("file", "link") else ())
        for form in FORMS
    ],
)
def test_no_command_that_a_step_planted_runs_on_the_host(
    rocwright: Command, home: Home, tmp_path: Path, engine: str, tiny_root: Path, attack: Attack, form: str
) -> None:
    catalog = planted(tmp_path, home, tiny_root, attack, form)
    words, env = ("--engine", engine), {"ROCWRIGHT_CATALOG": str(catalog)}

    def sure(*asked: str, status: int) -> str:
        done = rocwright(*asked, env=env)
        assert not attack.marker.exists(), f"rocwright {' '.join(asked)} ran what the step planted"
        assert "Traceback" not in done.stderr
        assert done.returncode == status, done.stderr
        return done.stderr

    sure("build", *words, status=6)
    tree = tree_of(home, catalog)
    assert os.path.lexists(tree / (".git" if form != "nested" else "inner/.git")), "it was planted"
    sure("build", *words, status=6)
    sure("clean", "work", "--keep", "0d", "--yes", "--dry-run", status=0)
    sure("store", "gc", "--keep", "30", status=0)
    sure("patch", "save", "alpha", "--message", "x", status=2)
    sure("shell", "alpha", *words, "--command", "cp file kept; sed -i '1s/^/mended: /' file", status=0)
    refused = sure("build", *words, status=2)
    assert "has unsaved changes" in refused
    sure("store", "gc", "--keep", "0", status=0)
    assert (tree / "file").is_file(), "a user's work is spared"
    sure("patch", "save", "--message", "Mend the file", status=0)
    (patch,) = (catalog / "patches/alpha").iterdir()
    assert "+mended: " in patch.read_text()


def unpacked(rocwright: Command, store: LocalStore, folder: Path) -> tuple[str, str]:
    """What a tree step makes of an archive of a folder: the sha256 of the tree, and what was said."""
    archive = folder.with_suffix(".tar.gz")
    with tarfile.open(archive, "w:gz") as file:
        file.add(folder, "x-1")
    sha256, size = store.put_file(archive)
    pin = builtin("x", sha256, size).model_copy(update={"filename": "x.tar.gz"})
    source = Step(name="source/x", component="x", action=FetchAction(files=(pin,)))
    output = Output(name=sha256, filename="x.tar.gz", sha256=sha256, size=size)
    store.put_record(record_of(source, output))
    inputs = (Input(name="source", key=source.key, output="*"),)
    step = Step(name="tree/x", component="x", action=TreeAction(), inputs=inputs)
    for one in (source, step):
        store.put_step(one.key, one.model_dump_json(by_alias=True).encode())
    done = rocwright("exec-step", step.key, "--store", store.url)
    assert done.returncode == 0, done.stderr
    record = store.record(step.key)
    assert record is not None
    return record.output("tree").sha256, done.stdout + done.stderr


def test_git_folders_in_a_source_archive_are_left_out_and_told_in_the_log(
    rocwright: Command, store: LocalStore, tmp_path: Path, attack: Attack
) -> None:
    honest = {"file": "text", ".gitignore": "x", "inner/file": "text"}
    without, said = unpacked(rocwright, store, write_tree(tmp_path / "without", honest))
    assert "left out" not in said
    folder = write_tree(tmp_path / "with", honest | {"inner/.git": f"gitdir: {attack.repository}"})
    for place in (".git", "inner/.GIT"):
        shutil.copytree(attack.repository, folder / place)
    tree, said = unpacked(rocwright, store, folder)
    told = "x-1/.git, x-1/inner/.GIT, x-1/inner/.git"
    assert f"left out of x.tar.gz, because git could execute what they name: {told}" in said
    assert tree == without, "the tree is that of an archive that never had any"


def test_in_the_shell_git_works_on_the_builds_own_commits_and_not_on_what_was_planted(
    rocwright: Command, home: Home, tmp_path: Path, engine: str, attack: Attack
) -> None:
    (tmp_path / "root").mkdir()
    make_tiny_root(tmp_path / "root.tar.zst", tmp_path / "root", more=("git",))
    catalog = planted(tmp_path, home, tmp_path / "root.tar.zst", attack, "folder")
    words, env = ("--engine", engine), {"ROCWRIGHT_CATALOG": str(catalog)}
    assert rocwright("build", *words, env=env).returncode == 6
    script = (
        "git log --format=%s && git config --list && sed -i '1s/^/mended: /' file && git commit -qam Mended"
    )
    opened = rocwright("shell", "alpha", *words, "--command", script, env=env)
    assert opened.returncode == 0, opened.stderr
    subject, *settings = opened.stdout.splitlines()
    assert subject == "upstream", "the planted repository has a commit named planted"
    assert not [one for one in settings if str(attack.marker) in one]
    saved = rocwright("patch", "save", env=env)
    assert saved.returncode == 0, saved.stderr
    (patch,) = (catalog / "patches/alpha").iterdir()
    assert patch.name == "0001-mended.patch"
    again = rocwright("patch", "save", env=env)
    assert "nothing was changed" in again.stderr
    assert not attack.marker.exists()
