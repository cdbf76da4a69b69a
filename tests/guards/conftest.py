"""A fresh virtual environment for each test, with packages made of a few files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

GUARD = Path(__file__).parents[2] / "src/rocwright/catalog/data/guards/single_package.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A build's Python, its site-packages, its working directory, and its user base."""

    python: Path
    site: Path
    workdir: Path
    user: Path

    @property
    def user_site(self) -> Path:
        return self.user / "lib" / self.site.parent.name / "site-packages"

    def run(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """The build's own Python in the working directory, in a clean environment."""
        return subprocess.run(
            [self.python, *words],
            cwd=self.workdir,
            env={"PATH": os.environ["PATH"], "PYTHONUSERBASE": str(self.user), **(env or {})},
            capture_output=True,
            text=True,
            timeout=50,
        )

    def guard(self, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """The guard, started as a step starts it."""
        return self.run(str(GUARD), "torch", "--workdir", str(self.workdir), *words, env=env)

    def found(self, *words: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
        """What the guard says of torch, as data, without an import."""
        done = self.guard("--json", "--no-import", *words, env=env)
        assert done.returncode in (0, 12), done.stderr
        report = json.loads(done.stdout)
        return {**report["packages"][0], "errors": report["errors"]}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    home = tmp_path / "env"
    venv.EnvBuilder(with_pip=False, symlinks=True, system_site_packages=True).create(home)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (tmp_path / "src").mkdir()
    return Place(
        python=home / "bin/python",
        site=home / "lib" / version / "site-packages",
        workdir=tmp_path / "src",
        user=tmp_path / "user",
    )


def copy_of_torch(folder: Path, version: str, *, init: str = "", installed_by: str = "") -> Path:
    """A package `torch` with a compiled part in name only; with metadata if something installed it."""
    package = folder / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(init)
    (package / "version.py").write_text(f"from typing import Optional\n__version__ = '{version}'\n")
    (package / "_C.so").touch()
    if installed_by:
        info = folder / f"torch-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
        (info / "INSTALLER").write_text(f"{installed_by}\n")
    return package


def source_tree_of_torch(folder: Path, version: str) -> Path:
    """A checkout of torch's source: a package without version.py and without its compiled part."""
    stubs = folder / "torch/_C"
    stubs.mkdir(parents=True)
    (stubs / "__init__.pyi.in").touch()
    (folder / "torch/__init__.py").write_text("from torch._C import *\n")
    (folder / "setup.py").touch()
    (folder / "version.txt").write_text(f"{version}\n")
    return folder / "torch"
