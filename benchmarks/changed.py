"""Catalogs in which something was changed, and `rocwright` with them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import BenchError, Took, timed
from benchmarks.place import ENGINE, Scratch, Stack
from rocwheel.toml.folders import OVERLAY
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import builtin_catalog, load_catalog


def changed_catalog(scratch: Scratch, component: str, change: Callable[[str], str]) -> Path:
    """A copy of the catalog in which `change` was made to the text of a component's recipe."""
    folder = scratch.path / "catalog"
    scratch.drop(folder)
    shutil.copytree(DATA, folder, ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "components" / f"{component}.toml"
    before = path.read_text()
    path.write_text(change(before))
    if load_catalog(folder).component(component) == builtin_catalog().component(component):
        raise BenchError(f"nothing was changed in the recipe of {component}")
    return folder


def with_variable(name: str, value: str) -> Callable[[str], str]:
    """One more line in [env]."""
    return lambda text: text.replace("[env]\n", f'[env]\n{name} = "{value}"\n', 1)


def with_comment(file: str, comment: str) -> Callable[[str], str]:
    """One more edit, which ends a C++ file with a comment."""
    lines = f'[[edit]]\nfile = "{file}"\nregex = \'\\Z\'\nwith = "// {comment}\\n"\nwhy = "a benchmark"\n'
    return lambda text: f"{text}\n{lines}"


def build_changed(scratch: Scratch, stack: Stack, catalog: Path) -> Took:
    """`rocwright build` with that catalog."""
    argv = [sys.executable, "-m", "rocwright", "build", *stack.words, "--engine", ENGINE]
    env = {"ROCWRIGHT_HOME": str(scratch.home.path), OVERLAY: str(catalog)}
    return timed(argv, log=scratch.log, env=env, cwd=scratch.folder)
