"""A matrix of rows, on trixie and sid, and the upstreams that they follow."""

from __future__ import annotations

import html
import json
import os
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

from tests.real.stacks import rocwright
from tests.sources.conftest import Repository, make_repository

from rocwheel_samples.trees import write_tree
from rocwright.catalog.folders import DATA
from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock
from rocwright.records.model import Run, Which
from rocwright.records.opening import open_records

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

# tally has nothing that is checked: a project's own gates say so
[[channel]]
name = "candidate"
said = "built"

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
class Server:
    """A server that runs, and where."""

    process: subprocess.Popen[bytes]
    address: str

    def page(self, path: str) -> str:
        """What stands on a page."""
        with urllib.request.urlopen(f"{self.address}{path}", timeout=30) as answer:
            return html.unescape(answer.read().decode())


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
    def serving(self, *more: str) -> Iterator[Server]:
        """`rocwright serve` in the project, once its index has looked; its end is that of SIGTERM."""
        words = [sys.executable, "-m", "rocwright", "serve", "--port", "0", "--open", *more]
        env = os.environ | {"ROCWRIGHT_HOME": str(self.home.path)}
        said = self.folder / "serve.log"
        with (
            said.open("w") as log,
            subprocess.Popen(words, cwd=self.folder, env=env, stderr=log) as process,
        ):
            try:
                until(lambda: "sign in" in said.read_text())
                server = Server(process, said.read_text().split("\n")[0].split()[-1])
                until(lambda: SMOKE in server.page("/gfx1151/simple/"))
                yield server
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
    """Wait for it, for ten minutes at most: a machine may have much else to do."""
    end = time.monotonic() + 600
    while True:
        with suppress(OSError):
            if ready():
                return
        assert time.monotonic() < end
        time.sleep(0.2)


def states(told: dict[str, list[dict[str, Any]]]) -> dict[str, set[str]]:
    return {name: {row["state"] for row in rows} for name, rows in told.items()}
