"""Each gate of `make test` closes: its command line fails on a small tree with a fault, and names it.

The trees have the project's configuration. The command lines are those that `make -n test` prints.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.collected import passed_over, unnamed

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
FOLDERS: list[str] = PROJECT["mypy"]["files"]
CONTRACTS = PROJECT["importlinter"]["contracts"]
PACKAGES = {"rocwright": "src/rocwright"} | {
    name: f"packages/{name}/src/{name}" for name in ("rocbase", "rocwheel")
}
SITE = "INHERIT: {root}/mkdocs.yml\nnav: [index.md{more}]\ndocs_dir: docs\nhooks: []\n"
TWO_FAULTS = "import nowhere\nimport yaml\n"
PROSE = ("README.md", "docs/x.md", "src/x.toml", "tools/x", "tests/x.py", "action.yml")
MISSPELT = "t" + "eh"


class Plant(NamedTuple):
    """Files of a tree that passes, files that make it fail, and what the gate prints of these."""

    tree: Callable[[], dict[str, str]]
    fault: dict[str, str]
    printed: tuple[str, ...]


def in_each_folder(text: str, printed: str) -> Plant:
    """Plant a fault in each folder with Python code, and want each of them named."""
    fault = {f"{folder}/planted.py": text for folder in FOLDERS}
    return Plant(packages, fault, tuple(map(printed.format, fault)))


def packages() -> dict[str, str]:
    return {f"{folder}/__init__.py": "" for folder in FOLDERS}


def sources(package: str) -> dict[str, str]:
    """Return the modules of a package, without those that steps carry along."""
    folder = ROOT / PACKAGES[package]
    own = (path for path in folder.rglob("*.py") if not path.is_relative_to(folder / "catalog/data"))
    return {str(path.relative_to(ROOT)): path.read_text() for path in own}


def rooms() -> dict[str, str]:
    """Return an empty module for each name in a contract."""
    names = [name for one in CONTRACTS for name in one.get("protected_modules", ())]
    for contract in CONTRACTS:
        floors = [room for floor in contract.get("layers", ()) for room in floor.split(" | ")]
        names += [f"{container}.{room}" for container in contract.get("containers", ()) for room in floors]
    tree = {f"{folder}/__init__.py": "" for folder in PACKAGES.values()}
    for name in names:
        package, _, module = name.partition(".")
        tree[f"{PACKAGES[package]}/{module.replace('.', '/')}/__init__.py"] = ""
    return tree


PLANTS = {
    "ruff check": in_each_folder("print(nowhere)\n", "{}:1:7"),
    "ruff format": in_each_folder("x  =  1\n", "{}:1:3"),
    "mypy": in_each_folder("def planted(): ...\n", "{}:1: error: Function is missing a return type"),
    "deptry src": Plant(
        partial(sources, "rocwright"),
        {"src/rocwright/planted.py": TWO_FAULTS},
        ("'nowhere' imported but missing", "'yaml' imported but declared as a dev"),
    ),
    **{
        f"deptry packages/{name}/src": Plant(
            partial(sources, name),
            {f"{PACKAGES[name]}/planted.py": TWO_FAULTS},
            ("'nowhere' imported but missing", "'yaml' imported but it is a transitive"),
        )
        for name in ("rocbase", "rocwheel")
    },
    "lint-imports": Plant(
        rooms,
        {
            "src/rocwright/model/__init__.py": "def late():\n    import rocwright.cli\n",
            "src/rocwright/web/__init__.py": "import rocwright.store.local\n",
            "src/rocwright/new_room.py": "",
            "packages/rocwheel/src/rocwheel/wheels/__init__.py": "import rocwheel.cli\nimport rocwright\n",
            "packages/rocbase/src/rocbase/errors/__init__.py": "import rocbase.files\n",
            "src/rocwright/cli/a.py": "import rocwright.cli.b\n",
            "src/rocwright/cli/b.py": "import rocwright.cli.a\n",
        },
        (*(f"{one['name']} BROKEN" for one in CONTRACTS), "rocwright.new_room"),
    ),
    "codespell": Plant(
        dict, dict.fromkeys(PROSE, f"# {MISSPELT}\n"), tuple(f"{name}:1: {MISSPELT}" for name in PROSE)
    ),
    "mkdocs": Plant(
        lambda: {"docs/index.md": "# Home\n", "site.yml": SITE.format(root=ROOT, more="")},
        {
            "docs/index.md": "# Home\n[a](dead.md) [b](#none) [c](/absolute.md) [d](folder/)\n",
            "docs/orphan.md": "# Orphan\n",
            "site.yml": SITE.format(root=ROOT, more=", unwritten.md"),
        },
        ("'dead.md'", "'#none'", "'/absolute.md'", "'folder/'", "- orphan.md", "'unwritten.md'"),
    ),
}


def lines() -> dict[str, str]:
    """Return the command lines of `make lint docs` by the words after their folder."""
    words = ["make", "-n", "-o", ".venv/ready", "-o", ".venv/docs", "test"]
    printed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {line.partition(".venv/bin/")[2]: line for line in printed.splitlines() if ".venv/bin/" in line}


def grow(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = "src:packages/rocbase/src:packages/rocwheel/src"
    env = os.environ | {"PYTHONPATH": path, "NO_COLOR": "1", "COLUMNS": "200"}
    return subprocess.run(
        ["sh", "-c", line], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An empty checkout with the configuration and the programs of this one."""
    for name in ("pyproject.toml", "packages/rocbase/pyproject.toml", "packages/rocwheel/pyproject.toml"):
        grow(tmp_path, {name: (ROOT / name).read_text()})
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/bin").symlink_to(Path(sys.executable).parent)
    return tmp_path


def test_every_line_of_lint_and_docs_has_a_plant() -> None:
    assert [line for line in lines() if not line.startswith(tuple(PLANTS))] == []


@pytest.mark.parametrize("gate", PLANTS)
def test_a_gate_of_lint_and_docs_closes(tree: Path, gate: str) -> None:
    [line] = [line for words, line in lines().items() if words.startswith(gate)]
    if gate == "mkdocs":
        line += " --config-file site.yml"
        if not (tree / ".venv/bin/mkdocs").exists():
            pytest.skip("mkdocs is not installed")
    grow(tree, PLANTS[gate].tree())
    passed = run(line, tree)
    assert passed.returncode == 0, passed.stdout
    grow(tree, PLANTS[gate].fault)
    failed = run(line, tree)
    assert failed.returncode != 0
    assert [text for text in PLANTS[gate].printed if text not in failed.stdout] == [], failed.stdout


def test_every_python_file_is_in_a_folder_that_mypy_checks() -> None:
    words = ["git", "ls-files", "*.py"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [name for name in listed if not name.startswith(tuple(FOLDERS))] == []


def test_every_file_of_tests_contributes_a_test(request: pytest.FixtureRequest) -> None:
    assert passed_over(request.session) == []


def test_every_marked_test_is_found_by_the_text_of_its_file(request: pytest.FixtureRequest) -> None:
    assert unnamed(request.session) == []


CONFTEST = f"import sys\nsys.path.append({str(ROOT)!r})\nfrom tests.conftest import *\n"
COLLECTED = """
from tests.collected import passed_over
def test_all_is_collected(request): assert passed_over(request.session) == []
"""
SKIPS = "import pytest\ndef test_it(): pytest.skip('{}')\n"
SKIPPED_FILE = "import pytest\npytest.skip('the sun is down', allow_module_level=True)\n"
PLANTED_TESTS = {
    "": "expected    tests/export/test_shells.py::test_it: pwsh is not installed",
    "tests/.hidden/test_x.py": "tests/.hidden/test_x.py",
    "tests/test_x.py": "UNEXPECTED  tests/test_x.py::test_it: the moon is full",
    "tests/test_file.py": "UNEXPECTED  tests/test_file.py: the sun is down",
}


@pytest.mark.parametrize("planted", PLANTED_TESTS)
def test_a_run_fails_for_a_file_passed_over_and_for_a_skip_that_is_not_expected(
    tmp_path: Path, planted: str
) -> None:
    """The hooks are those of the project's conftest, in a worker of xdist as in `make fast`."""
    grow(tmp_path, {"conftest.py": CONFTEST, "tests/test_all.py": COLLECTED})
    grow(tmp_path, {"tests/export/test_shells.py": SKIPS.format("pwsh is not installed")})
    if planted:
        grow(tmp_path, {planted: SKIPPED_FILE if "file" in planted else SKIPS.format("the moon is full")})
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    words = [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider", "--basetemp=t", "tests"]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == (pytest.ExitCode.TESTS_FAILED if planted else pytest.ExitCode.OK), done.stdout
    assert PLANTED_TESTS[planted] in done.stdout
