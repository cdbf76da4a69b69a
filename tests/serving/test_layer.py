"""Environments on a root file system whose Python may say anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocbase.errors import CheckError
from rocwright import sandbox
from rocwright.home import Home
from rocwright.serving.layer import Layer
from rocwright.sources.bases.roots import unpacked_root
from rocwright.store.local import LocalStore


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.path.mkdir()
    return home


@pytest.mark.parametrize("said", ["hello", 'rocwright {"there": []}'])
def test_a_python_that_says_something_else_is_an_error(
    python_root: Path, engine: str, home: Home, said: str
) -> None:
    store = LocalStore(home.store)
    sha256, _ = store.put_file(python_root)
    root = unpacked_root(store, sha256, home.roots, print)
    (root / "usr/bin/odd").write_text(f"#!/bin/sh\necho '{said}'\n")
    (root / "usr/bin/odd").chmod(0o755)
    with pytest.raises(CheckError, match="does not say what it has"):
        Layer(root=root, python="odd", engine=sandbox.ENGINES[engine]).about()
