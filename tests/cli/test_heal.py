"""A build fails in a way that is known, mends itself, and records it in the lock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from samples.project import make_sources, open_project, put_roots
from tests.conftest import Command

from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock, write_lock, write_request

ISSUES = """
[[issue]]
name       = "old-minimum"
class      = "compile"
means      = "the tree asks for something too old"
cause      = "a newer tool refuses it"
remedy     = "Set MINIMUM=3.5."
remedies   = [
    { kind = "set", variables = { SHOWN = "1" }, scope = "run" },
    { kind = "set", variables = { MINIMUM = "2" } },
    { kind = "set", variables = { MINIMUM = "3.5" } },
]
patterns   = ["minimum is too old"]
examples   = ["minimum is too old"]
no_match   = ["minimum is fine"]
source     = ["this test"]
confidence = "high: reproduced"

[[issue]]
name       = "second-failure"
class      = "compile"
means      = "a second thing is missing"
cause      = "nobody set it"
remedy     = "Set SECOND."
remedies   = [{ kind = "set", variables = { SECOND = "yes", FLAGS = "-more" }, join = " " }]
patterns   = ["second is missing"]
examples   = ["second is missing"]
no_match   = ["second is there"]
source     = ["this test"]
confidence = "high: reproduced"

[[issue]]
name       = "leak"
class      = "compile"
means      = "a variable of the shell leaked into the build"
cause      = "the recipe's own shell sets it"
remedy     = "Unset LEAKED."
remedies   = [{ kind = "unset", variables = ["LEAKED", "AROUND"] }]
patterns   = ["leaked into the build"]
examples   = ["leaked into the build"]
no_match   = ["nothing leaked"]
source     = ["this test"]
confidence = "high: reproduced"

[[issue]]
name       = "not-mended"
class      = "compile"
means      = "a file is wrong"
cause      = "upstream wrote it so"
remedy     = "Correct the file."
remedies   = [
    { kind = "edit", component = "alpha", edit = { file = "gone", regex = "^The", with = "A", why = "w" } },
    { kind = "edit", component = "alpha", edit = { file = "file", regex = '\\AThe', with = "A", why = "w" } },
]
patterns   = ["is not mended"]
examples   = ["is not mended"]
no_match   = ["is mended"]
source     = ["this test"]
confidence = "high: reproduced"
"""

RECIPE = {
    "alpha": {
        "kind": "archive",
        "env": {"FLAGS": "-O2", "AROUND": "x"},
        "run": [
            "export LEAKED=1",
            'test "${MINIMUM-}" = 3.5 || { echo "error: minimum is too old"; exit 1; }',
            'test "${SECOND-}" = yes || { echo "error: second is missing"; exit 1; }',
            'test -z "${LEAKED-}${AROUND-}" || { echo "error: leaked into the build"; exit 1; }',
            'grep -q "^A source" file || { echo "error: the file is not mended"; exit 1; }',
            'echo "$FLAGS" > $OUT/alpha-1.0.tar.gz',
        ],
        "output": [{"name": "archive", "pattern": "alpha-*.tar.gz"}],
        "edit": [{"file": "file", "regex": r"\Athe", "with": "The", "why": "a sentence begins so"}],
    }
}


@pytest.fixture
def catalog(tmp_path: Path, home: Home, engine: str, tiny_root: Path) -> Path:
    """A project in the folder of the command, with a catalog of the user's own and a root in the store."""
    make_sources(tmp_path / "sources", RECIPE)
    catalog = tmp_path / "sources/catalog"
    (catalog / "issues").mkdir()
    (catalog / "issues/own.toml").write_text(ISSUES)
    put_roots(open_project(tmp_path / "sources", home.path), tiny_root)
    lock = read_lock(tmp_path / "sources/rocwright.lock")
    write_request(tmp_path / "project/rocwright.toml", lock.request)
    write_lock(tmp_path / "project/rocwright.lock", lock)
    return catalog


def trail(rocwright: Command, env: dict[str, str]) -> list[dict[str, Any]]:
    told = rocwright("heal", "--explain", "--json", env=env)
    assert told.returncode == 0, told.stderr
    found: list[dict[str, Any]] = json.loads(told.stdout)
    return found


def kill_when(path: Path, said: str, home: Home, env: dict[str, str], *words: str) -> None:
    """Kill a healing build at once when its lock says so; it may have gone on a little by then."""
    build = subprocess.Popen(
        [sys.executable, "-m", "rocwright", "build", "--heal", *words],
        cwd=path.parent,
        env=os.environ | {"ROCWRIGHT_HOME": str(home.path)} | env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while build.poll() is None and said not in path.read_text():
        time.sleep(0.01)
    build.kill()
    build.wait()


def test_known_failures_are_mended_one_after_the_other_and_remembered(
    rocwright: Command, tmp_path: Path, home: Home, catalog: Path, engine: str
) -> None:
    env = {"ROCWRIGHT_CATALOG": str(catalog)}
    words = ("--engine", engine)
    path = tmp_path / "project/rocwright.lock"
    before = path.read_bytes()
    failed = rocwright("build", *words, env=env)
    assert failed.returncode == 6
    assert "rocwright build --heal   sets MINIMUM=2 for alpha, and records it in the lock" in failed.stderr
    assert path.read_bytes() == before, "a plain build never changes the lock"

    kill_when(path, "trial", home, env, *words)
    healed = rocwright("build", *words, "--heal", "--json", env=env)
    assert healed.returncode == 0, healed.stderr
    (artifact,) = json.loads(healed.stdout)["artifacts"]
    assert Path(artifact["path"]).read_text() == "-O2 -more\n"

    rows = trail(rocwright, env)
    assert [(one["issue"], one["does"], one["outcome"]) for one in rows] == [
        ("old-minimum", "sets MINIMUM=2 for alpha", "useless"),
        ("old-minimum", "sets MINIMUM=3.5 for alpha", "helped"),
        ("second-failure", "adds yes to SECOND and -more to FLAGS for alpha", "helped"),
        ("leak", "removes LEAKED and AROUND from the environment of alpha", "helped"),
        ("not-mended", "edits gone of alpha (w)", "useless"),
        ("not-mended", "edits file of alpha (w)", "helped"),
    ]
    assert (
        rows[4]["told"]
        == "tree/alpha failed with it: edits: the edit of gone names a file that does not exist"
    )
    assert rows[0]["told"] == "alpha failed in the same way"
    assert rows[1]["told"] == "alpha got past old-minimum, then failed with second-failure"
    assert rows[1]["failed"] == "error: minimum is too old"
    assert rows[1]["before"] == rows[0]["before"] != rows[1]["after"] == rows[2]["before"]

    again = rocwright("build", *words, env=env)
    assert again.returncode == 0
    assert "4 remedies: sets MINIMUM=3.5 for alpha (old-minimum); adds yes to SECOND" in again.stderr
    assert "nothing to do" in again.stderr
    why = rocwright("why", "alpha", env=env)
    assert "env MINIMUM = 3.5" in why.stdout
    assert rows[5]["after"] in why.stdout

    forgotten = rocwright("heal", "--forget", "leak", env=env)
    assert forgotten.returncode == 0, forgotten.stderr
    assert "rebuilds without them what was built with them:\n  rocwright build\n" in forgotten.stderr
    assert "rocwright lock" not in forgotten.stderr, "its action chose nothing in the lock"
    assert rocwright("build", *words, env=env).returncode == 6
