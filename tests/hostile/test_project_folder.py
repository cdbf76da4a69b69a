"""No interpreter that rocwright starts takes modules from the folder that the user stands in."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from samples.repository import make_repository

import rocwheel
import rocwright
from rocbase.errors import CheckError
from rocbase.processes.python import python_module
from rocwright.execution import install
from rocwright.execution.cleanup import room
from rocwright.follow.bisection.run import History
from rocwright.sources import index
from rocwright.sources.git import remote_refs
from rocwright.web import queue

PACKAGES = [Path(package.__file__ or "").parent for package in (rocwright, rocwheel)]
PLANTED = ("json", "pip", "rocwright", "rocwheel", "multiprocessing", "encodings", "sitecustomize")
SAFE = ("-P", "-I")
INTERPRETERS = {"sys.executable", "python"}


@pytest.fixture
def hostile_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder whose modules leave a file where they are imported."""
    folder, marker = tmp_path / "cloned", tmp_path / "ran"
    for name in PLANTED:
        module = folder / name / "__init__.py"
        module.parent.mkdir(parents=True)
        module.write_text(f"open({str(marker)!r}, 'a').write({name!r} + '\\n')\n")
    monkeypatch.chdir(folder)
    yield folder
    assert not marker.exists(), marker.read_text()


def test_python_itself_would_import_from_that_folder(hostile_folder: Path) -> None:
    marker = hostile_folder.parent / "ran"
    subprocess.run([sys.executable, "-m", "json"], check=False, capture_output=True)
    assert "json" in marker.read_text()
    marker.unlink()


def test_modules_are_started_without_it(hostile_folder: Path) -> None:
    done = subprocess.run(python_module("pip", "--version"), capture_output=True, text=True, check=True)
    assert done.stdout.startswith("pip ")


def test_the_index_settings_are_read_without_it(hostile_folder: Path) -> None:
    index._settings()


def test_the_dashboard_starts_verbs_without_it(hostile_folder: Path) -> None:
    subprocess.run([*queue.mine("targets"), "gfx803"], capture_output=True, check=True)


def test_wheels_are_installed_without_it(hostile_folder: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-P", "-m", "venv", tmp_path / "venv"], check=True)
    assert "pip" in install.installed(tmp_path / "venv/bin/python")
    with pytest.raises(CheckError):
        install._pip_install(tmp_path / "venv/bin/python", [tmp_path / "missing.whl"])


@pytest.mark.parametrize("verb", [["plan", "gfx-smoke", "--gpu", "gfx803"], ["stacks"], ["doctor"], ["lock"]])
def test_a_verb_runs_nothing_of_it(hostile_folder: Path, verb: list[str]) -> None:
    command = Path(sys.executable).with_name("rocwright")
    subprocess.run([command, *verb], capture_output=True, check=False, env=dict(os.environ), timeout=120)


def test_other_tools_read_no_settings_of_it(
    hostile_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that was not cloned, but unpacked, brings a .git/config; uv reads where its cache is."""
    upstream = make_repository(tmp_path / "upstream")
    subprocess.run(["git", "init", "-q", hostile_folder], check=True)
    with (hostile_folder / ".git/config").open("a") as config:
        config.write(f'[url "/absent"]\n\tinsteadOf = {upstream.url}\n')
    assert remote_refs(upstream.url, 20)
    assert History(upstream.url, tmp_path / "history")
    assert room._ask(("pwd",)) == ("/\n", "")


def test_every_started_interpreter_leaves_that_folder_out() -> None:
    unsafe = [
        f"{path}:{node.lineno}"
        for package in PACKAGES
        for path in package.rglob("*.py")
        if "data" not in path.relative_to(package).parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.List | ast.Tuple) and _starts_python(node) and not _is_safe(node)
    ]
    assert unsafe == []


def _starts_python(command: ast.List | ast.Tuple) -> bool:
    return bool(INTERPRETERS & {ast.unparse(word) for word in command.elts})


def _is_safe(command: ast.List | ast.Tuple) -> bool:
    words = [ast.unparse(word).strip("'") for word in command.elts]
    name, option = next(pair for pair in pairwise([*words, ""]) if pair[0] in INTERPRETERS)
    # a script brings the folder that it lies in; python may be older than -P
    return option in SAFE or (name == "python" and option not in ("-c", "-m"))
