"""A Python package that has no wheel: locked at the index, built in a sandbox, used by a build."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.real.stacks import rocwright

from rocwheel_samples.trees import write_tree
from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock

pytestmark = [pytest.mark.real, pytest.mark.nightly]

RECIPE = """
name    = "reader"
summary = "Reads a header"
license = "MIT"
kind    = "archive"
python  = ["CppHeaderParser>=2.7.4"]
run     = ["python3 read.py > $OUT/read.txt"]
output  = [{ name = "archive", pattern = "read.txt" }]
release = [{ version = "1.0", places = [{ builtin = "reader" }], source = "a test" }]
system  = { build = ["python-venv"] }
"""

PROGRAM = """
from CppHeaderParser import CppHeader
print(*CppHeader("class Seen { int x; };", argType="string").classes)
"""

STACK = """
name       = "reader"
summary    = "Reads a header"
components = ["reader"]
bases      = ["debian:trixie"]
source     = "a test"
"""


def test_a_build_gets_the_wheel_of_a_source_distribution(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipes = {"components/reader.toml": RECIPE, "stacks/reader.toml": STACK}
    catalog = write_tree(tmp_path / "catalog", recipes | {"sources/reader/read.py": PROGRAM})
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(catalog))
    folder = tmp_path / "project"
    folder.mkdir()
    rocwright(home, folder, "init", "--stack", "reader", "--gpu", "gfx1151")
    rocwright(home, folder, "lock")
    python = read_lock(folder / "rocwright.lock").python
    assert python is not None
    (sdist,) = python.sdists
    assert sdist.files[0].filename == "CppHeaderParser-2.7.4.tar.gz"
    assert {"setuptools", "wheel"} <= {pin.filename.partition("-")[0] for pin in sdist.requires}
    built = json.loads(rocwright(home, folder, "build", "--json"))
    assert Path(built["artifacts"][0]["path"]).read_text() == "Seen\n"
