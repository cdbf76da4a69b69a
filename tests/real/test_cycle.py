"""A matrix of four rows, on trixie and sid, whose upstreams move, break and heal: from watch to served."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.making import write_tree
from tests.real.stacks import rocwright
from tests.sources.conftest import Repository, make_repository

from rocwright.catalog.read import DATA
from rocwright.home import Home
from rocwright.records.model import Run, Which
from rocwright.records.place import open_records
from rocwright.resolve.files import read_lock

pytestmark = pytest.mark.real

SMOKE, TALLY = "gfx-smoke", "tally"
GPUS = {SMOKE: ("gfx1151",), TALLY: ("gfx803", "gfx1103", "gfx1151")}
BASES = {SMOKE: "debian:sid", TALLY: "debian:trixie"}
FIRST = {SMOKE: "0.1.0", TALLY: "1.0.0"}

RECIPE = """\
name    = "tally"
summary = "Counts: a small program"
license = "MIT"
kind    = "archive"
run     = ["g++ -O2 tally.cpp -o $OUT/tally", "$OUT/tally"]
output  = [{ name = "archive", pattern = "tally" }]
system  = { build = ["c++"] }
release = [{ version = "1.0.0", places = [{ git = "TALLY", tag = "v1.0.0" }], source = "this test" }]
"""
PROGRAM = "#include <cstdio>\nint main() { return std::printf(%s) < 0; }\n"
STACK = """\
name       = "NAME-followed"
summary    = "NAME, from a repository that moves"
components = ["NAME"]
bases      = ["BASE"]
source     = "this test"
"""
MATRIX = """
[[matrix]]
stack = ["NAME-followed"]
gpu   = GPUS
base  = "BASE"
"""
SETTINGS = """
[watch]
cool-down = 0

[[channel]]
name   = "known-good"
said   = "checked without a GPU"
checks = ["machine-code"]
"""


@dataclass
class Upstream:
    """What the matrix is made of, each in a repository of its own, with the catalog that names them."""

    folder: Path
    repositories: dict[str, Repository] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        for name in FIRST:
            self.repositories[name] = make_repository(self.folder / f"{name}.git")
        tree = self.repositories[SMOKE].path
        shutil.copytree(DATA / "sources" / SMOKE, tree, dirs_exist_ok=True)
        self.repositories[SMOKE].git("add", ".")
        recipe = (DATA / f"components/{SMOKE}.toml").read_text()
        builtin = f'{{ builtin = "{SMOKE}" }}'
        assert builtin in recipe
        place = f'{{ git = "{tree}", tag = "v{FIRST[SMOKE]}" }}'
        files = {
            f"components/{SMOKE}.toml": recipe.replace(builtin, place),
            "components/tally.toml": RECIPE.replace("TALLY", self.repositories[TALLY].url),
        }
        for name, base in BASES.items():
            said = STACK.replace("NAME", name).replace("BASE", base)
            files[f"stacks/{name}-followed.toml"] = said
        self.catalog = write_tree(self.folder / "catalog", files)
        self.smoke("0.1.0")
        self.tally("1.0.0", '"one"')

    def smoke(self, version: str, more: str = "") -> str:
        """Release gfx-smoke with more text in a source file; gives the commit."""
        repository = self.repositories[SMOKE]
        about, source = repository.path / "pyproject.toml", repository.path / "hip/report.cpp"
        lines = (DATA / "sources" / SMOKE / "pyproject.toml").read_text()
        about.write_text(lines.replace('version = "0.1.0"', f'version = "{version}"'))
        source.write_text((DATA / "sources" / SMOKE / "hip/report.cpp").read_text() + more)
        return self._release(repository, version)

    def tally(self, version: str, *texts: str) -> str:
        """Commit tally with each of these expressions in it, and release the last; gives the first commit."""
        repository = self.repositories[TALLY]
        commits = [repository.commit("tally.cpp", PROGRAM % text) for text in texts]
        repository.git("tag", "--force", f"v{version}")
        return commits[0]

    def _release(self, repository: Repository, version: str) -> str:
        repository.git("add", ".")
        repository.git("commit", "--quiet", "--allow-empty", "-m", f"Release {version}")
        repository.git("tag", f"v{version}")
        return repository.git("rev-parse", "HEAD")


@dataclass
class Matrix:
    """A project of rows, turned by the command."""

    home: Home
    folder: Path
    upstream: Upstream
    stacks: tuple[str, ...]

    def __post_init__(self) -> None:
        self.folder.mkdir()
        first = self.stacks[0]
        rows = "".join(
            MATRIX.replace("NAME", name).replace("BASE", BASES[name]).replace("GPUS", json.dumps(GPUS[name]))
            for name in self.stacks
        )
        asked = f'stack = "{first}-followed"\ngpu = ["gfx1151"]\nbase = "{BASES[first]}"\n'
        (self.folder / "rocwright.toml").write_text(asked + SETTINGS + rows)

    def turn(self, *words: str) -> dict[str, list[dict[str, Any]]]:
        """A cycle; gives its rows by component."""
        told = json.loads(rocwright(self.home, self.folder, "cycle", "--json", *words, check=False))
        assert "rows" in told, told
        found: dict[str, list[dict[str, Any]]] = {}
        for row in told["rows"]:
            found.setdefault(row["request"]["stack"].removesuffix("-followed"), []).append(row)
        assert {name: len(rows) for name, rows in found.items()} == {
            one: len(GPUS[one]) for one in self.stacks
        }
        return found

    def version(self, name: str, channel: str) -> set[str]:
        """What the locks of a channel have of a component, in all its rows."""
        base = BASES[name].replace(":", "-")
        paths = [self.folder / f"locks/{name}-followed_{gpu}_{base}/{channel}.lock" for gpu in GPUS[name]]
        locks = [read_lock(path) for path in paths if path.exists()]
        return {one.version for lock in locks for one in lock.components}

    def runs(self, name: str) -> list[Run]:
        with open_records(self.home) as records:
            return records.runs(Which(stack=f"{name}-followed"))

    @contextmanager
    def serving(self) -> Iterator[str]:
        """`rocwright serve` in the project; gives its address once its index has looked."""
        words = [sys.executable, "-m", "rocwright", "serve", "--port", "0", "--open"]
        env = os.environ | {"ROCWRIGHT_HOME": str(self.home.path)}
        with subprocess.Popen(words, cwd=self.folder, env=env, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            try:
                address = process.stderr.readline().split()[-1]
                index = f"{address}/gfx1151/simple/"
                until(lambda: SMOKE in urllib.request.urlopen(index, timeout=30).read().decode())
                yield address
            finally:
                process.terminate()

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[str]]:
        """A cycle that runs meanwhile, in a group of its own."""
        words = [sys.executable, "-m", "rocwright", "cycle"]
        env = os.environ | {"ROCWRIGHT_HOME": str(self.home.path)}
        with subprocess.Popen(
            words, cwd=self.folder, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)


def until(ready: Callable[[], bool]) -> None:
    """Wait for it, for two minutes at most."""
    end = time.monotonic() + 120
    while True:
        with suppress(OSError):
            if ready():
                return
        assert time.monotonic() < end
        time.sleep(0.2)


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Upstream:
    made = Upstream(tmp_path / "upstream")
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(made.catalog))
    return made


def states(told: dict[str, list[dict[str, Any]]]) -> dict[str, set[str]]:
    return {name: {row["state"] for row in rows} for name, rows in told.items()}


def test_four_rows_move_break_and_heal(home: Home, upstream: Upstream, tmp_path: Path) -> None:
    matrix = Matrix(home, tmp_path / "matrix", upstream, (SMOKE, TALLY))
    first = matrix.turn()
    assert states(first) == {SMOKE: {"promoted"}, TALLY: {"promoted"}}, first
    for row in first[SMOKE]:
        assert row["promoted"] == ["nightly", "candidate", "known-good"], row
    for row in first[TALLY]:
        assert row["promoted"] == ["nightly", "candidate"], row
        assert row["waits"]["known-good"] == "did not run: machine-code"
    assert matrix.version(SMOKE, "known-good") == {"0.1.0"}

    upstream.smoke("0.1.1")
    moved = matrix.turn()
    assert states(moved) == {SMOKE: {"promoted"}, TALLY: {"unchanged"}}
    for row in moved[SMOKE]:
        assert any("gfx-smoke 0.1.0 -> 0.1.1" in line for line in row["changes"]), row
    assert matrix.version(SMOKE, "known-good") == {"0.1.1"}

    bad = {SMOKE: upstream.smoke("0.1.2", "int broken = nothing_of_this_name;\n")}
    bad[TALLY] = upstream.tally("1.0.1", "nothing", "nothing + 1")
    failed = matrix.turn("--bisect")
    assert states(failed) == {SMOKE: {"failed"}, TALLY: {"failed"}}
    for name, rows in failed.items():
        for row in rows:
            said = "\n".join(row["culprit"]["says"])
            assert f"{name}: the first bad commit\n    {bad[name][:12]}" in said, said
            assert bad[name][:12] in Path(row["culprit"]["report"]).read_text()
    assert matrix.version(SMOKE, "nightly") == {"0.1.1"}
    assert matrix.version(TALLY, "nightly") == {"1.0.0"}
    assert any(run.outcome == "failed" and run.origin.startswith("cycle ") for run in matrix.runs(TALLY))
    before = len(matrix.runs(TALLY))
    assert {row["why"] for row in matrix.turn()[TALLY]} == {"the same candidate failed before"}
    assert len(matrix.runs(TALLY)) == before

    upstream.smoke("0.1.3")
    upstream.tally("1.0.2", '"healed"')
    healed = matrix.turn()
    assert states(healed) == {SMOKE: {"promoted"}, TALLY: {"promoted"}}, healed
    assert matrix.version(SMOKE, "known-good") == {"0.1.3"}
    assert matrix.version(TALLY, "candidate") == {"1.0.2"}
    with open_records(home) as records:
        held = records.promotions(stack=f"{SMOKE}-followed", channel="known-good")
        newest, older = (records.lock(one.lock) for one in held[:2])
        assert newest is not None
        assert older is not None
        assert ("0.1.3" in newest, "0.1.1" in older) == (True, True)
        assert {one.by.split()[0] for one in held} == {"cycle"}

    with matrix.serving() as address:
        into = tmp_path / "installed"
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps")
        index = ("--index-url", f"{address}/gfx1151/simple/", "--target", str(into))
        subprocess.run([*pip, *index, SMOKE], check=True)
    assert (into / "gfx_smoke-0.1.3.dist-info").is_dir()
    # what failed was never laid out
    laid = {path.name.split("-")[1] for path in matrix.folder.glob("rocwright-out/*/*/*.whl")}
    assert laid == {"0.1.0", "0.1.1", "0.1.3"}


def test_kills_moved_tags_and_upstreams_that_are_down(home: Home, upstream: Upstream, tmp_path: Path) -> None:
    matrix = Matrix(home, tmp_path / "matrix", upstream, (TALLY,))
    with matrix.running() as process:
        assert process.stderr is not None
        process.stderr.readline()
        os.killpg(process.pid, signal.SIGSTOP)
        refused = json.loads(rocwright(home, matrix.folder, "cycle", "--json", check=False))
        assert "running already" in refused["error"]["what"]
    # killed when it has said so many lines: chosen once and for all, over what a cycle of three rows says
    for lines in random.Random(20).sample(range(2, 14), 3):
        with matrix.running() as process:
            assert process.stderr is not None
            for _ in range(lines):
                process.stderr.readline()
    whole = matrix.turn()[TALLY]
    assert all(row["state"] in ("promoted", "unchanged") for row in whole), whole
    assert matrix.version(TALLY, "nightly") == matrix.version(TALLY, "candidate") == {"1.0.0"}
    assert not list(matrix.folder.glob("locks/*/trying.lock"))
    with open_records(home) as records:
        for gpu in GPUS[TALLY]:
            (held,) = records.promotions(stack=f"{TALLY}-followed", gpu=gpu, channel="nightly")[:1]
            kept = records.lock(held.lock)
            assert kept is not None
            assert '"1.0.0"' in kept

    before = len(matrix.runs(TALLY))
    repository = upstream.repositories[TALLY]
    away = repository.path.rename(tmp_path / "away")
    for row in matrix.turn()[TALLY]:
        assert row["state"] == "not tried", row
        assert "tally.git" in "".join(row["silent"])
    away.rename(repository.path)

    was = repository.git("rev-parse", "v1.0.0")
    upstream.tally("1.0.0", '"another under the same name"')
    for row in matrix.turn()[TALLY]:
        assert row["state"] == "not tried", row
        assert "nothing is bumped" in row["why"]
        assert was[:12] in row["why"]
    repository.git("tag", "--force", "v1.0.0", was)

    upstream.tally("1.0.1", '"the next"')
    told = json.loads(rocwright(home, matrix.folder, "cycle", "--dry-run", "--json"))
    assert {row["state"] for row in told["rows"]} == {"to try"}
    assert "tally 1.0.0 -> 1.0.1 (patch)" in told["rows"][0]["changes"]
    assert matrix.version(TALLY, "nightly") == {"1.0.0"}
    assert len(matrix.runs(TALLY)) == before
    assert states(matrix.turn()) == {TALLY: {"promoted"}}
    assert matrix.version(TALLY, "candidate") == {"1.0.1"}
