"""SECURITY.md: each promise has tests that exist, and its programs are those that the code starts."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import rocbase
import rocwheel
import rocwright

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "SECURITY.md").read_text()
PACKAGES = [Path(package.__file__ or "").parent for package in (rocwright, rocwheel, rocbase)]

STARTERS = frozenset(
    {"run", "stream", "pipe", "reading", "attach", "attend", "detach", "talk", "detach_into"}
)
PYTHON = ("python_module", "mine", "sys.executable", "python")
ENGINES = "bwrap podman docker buildah systemd-nspawn unshare sh"

HANDED = {
    "sources/bases/debian.py _command": "unshare bwrap",
    "sources/bases/enter.py sys.argv[1]": "bwrap",
    "sources/bases/roots.py command": "tar unshare",
    "sources/bases/writable.py words": "unshare bwrap",
    "sources/bases/writable.py in_namespace": "unshare tar",
    "follow/bisection/run.py words": "git",
    "execution/cleanup/room.py command": "pip uv podman docker buildah",
    "execution/install.py words": "python",
    "farm/slurm.py words": "sbatch sinfo squeue scancel",
    "diagnosis/machine/tools.py tool.program": "git gcc ninja make cmake",
    "sandbox/engine.py argv": "bwrap podman docker buildah systemd-nspawn",
    "sandbox/reaper.py companion": "python",
    "sandbox/runner.py argv": ENGINES,
    "sandbox/runner.py box.argv": ENGINES,
    "sandbox/state.py argv": ENGINES,
    "serving/container.py client": "podman docker",
    "serving/logs.py writer": "python",
    "sources/bases/tools.py command": "unshare bwrap",
    "sources/bases/tools.py words": "unshare bwrap",
    "sources/bases/tools.py installed": "podman docker",
    "sources/bases/tools.py engine": "podman docker",
    "sources/git.py _FETCHING": "sh git",
    "sources/git.py command": "sh git",
    "sources/git.py git": "sh git",
    "sources/git.py words": "sh git",
    "web/queue.py order.words": "python",
    "sources/patching/series.py program": "patch",
    "rocwheel/wheels/audit/llvm.py argv": "llvm-objdump",
    "rocwheel/wheels/audit/llvm.py path": "llvm-objdump",
    "rocwheel/wheels/repair/patchelf.py path": "patchelf",
    "rocwheel/wheels/repair/patchelf.py words": "patchelf",
    "rocwheel/wheels/repair/trace.py words": "strace python",
}
"""What a command begins with where it is not written beside the call that starts it."""


def rows(first: str) -> Iterator[list[str]]:
    """Yield the cells of the rows of each table whose first column has that name."""
    inside = False
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if inside and line.startswith("| ") and "---" not in line:
            yield cells
        inside = line.startswith("|") and (inside or cells[0] == first)


def code(cell: str) -> list[str]:
    """Return what a cell has between backquotes."""
    return re.findall(r"`([^`]+)`", cell)


def test_each_promise_has_tests_that_exist() -> None:
    promises = list(rows("promise"))
    assert len(promises) > 25
    for promise, _, tests in promises:
        assert code(tests), f"no test: {promise}"
        for name in code(tests):
            path, _, function = name.partition("::")
            text = (ROOT / path).read_text() if (ROOT / path).is_file() else ""
            assert f"def {function or 'test_'}" in text, f"{promise}: there is no {name}"


def test_the_page_names_each_program_that_runs_on_the_host() -> None:
    listed: defaultdict[str, set[str]] = defaultdict(set)
    started: defaultdict[str, set[str]] = defaultdict(set)
    handed: set[str] = set()
    for programs, modules, _ in rows("programs"):
        for program in code(programs):
            listed[program] |= set(code(modules))
    for name, tree in _modules():
        for command in _commands(tree):
            word, is_written = _first_word(command)
            handed |= set() if is_written else {f"{name} {word}"}
            for program in [word] if is_written else HANDED.get(f"{name} {word}", "").split():
                started[program].add(name)
    assert handed == HANDED.keys()
    assert listed == started


def _modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules that run on the host; the starters themselves start what they are handed."""
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            name = path.relative_to(package.parent).as_posix()
            if "/data/" not in name and not name.startswith("rocbase/processes/"):
                yield name.removeprefix("rocwright/"), ast.parse(path.read_text())


def _commands(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the commands that a module starts."""
    names = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rocbase.processes")
        for alias in node.names
        if alias.name in STARTERS
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            owner, _, verb = ast.unparse(node.func).rpartition(".")
            ours = owner in names and verb in STARTERS if owner else verb in names
            process = owner == "os" and verb.startswith(("exec", "posix_spawn", "spawn", "system", "popen"))
            if ours or process or owner == "subprocess" or verb.startswith("create_subprocess"):
                yield node.args[0]


def _first_word(command: ast.expr) -> tuple[str, bool]:
    """Return what a command begins with, and whether that is the name of a program."""
    match command:
        case ast.Constant(value=str() as word):
            return Path(word).name, True
        case ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_]):
            return _first_word(first)
        case ast.Starred(value=inner):
            return _first_word(inner)
        case ast.Call(func=func):
            text = ast.unparse(func)
        case _:
            text = ast.unparse(command)
    return ("python", True) if text in PYTHON else (text, False)
