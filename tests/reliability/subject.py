"""A small project that is really built, again and again, while something is done to it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from samples.project import TAR, make_sources, open_project, put_roots
from tests.execution.test_kill import processes_of
from tests.making import make_tiny_root

from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock, write_lock, write_request
from rocwright.sources.bases.roots import remove_tree
from rocwright.store.local import LocalStore
from rocwright.store.model import records

COMPILE = """for n in 1 2 3 4; do
  echo "int f$n(void) { return $n; }" > $n.c
  ccache gcc -I. -c $n.c
done"""
COMPONENTS: dict[str, dict[str, object]] = {
    "alpha": {
        "run": [COMPILE, "sleep 0.2", "mkdir alpha-1", "cp file *.o alpha-1/",
                f"{TAR} $OUT/alpha-1.0.tar.gz alpha-1"],
        "kind": "archive",
        "output": [{"name": "archive", "pattern": "alpha-*.tar.gz"}],
    },
    "beta": {
        "run": ["sleep 0.2", "cat file file > $OUT/beta-1.0.tar"],
        "kind": "archive",
        "output": [{"name": "archive", "pattern": "beta-*.tar"}],
    },
}  # fmt: skip
"""One compiles through the compiler cache; both take long enough to be interrupted."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its status, what it told as JSON, and its messages."""

    status: int
    told: dict[str, Any]
    said: str


@dataclass(frozen=True)
class Subject:
    """A project folder and a home, in `folder`; `right` are the digests of the artifacts of its steps."""

    folder: Path
    right: dict[str, str]

    @property
    def home(self) -> Home:
        return Home(self.folder / "home")

    @property
    def store(self) -> LocalStore:
        return LocalStore(self.home.store)

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {
            "ROCWRIGHT_HOME": str(self.home.path),
            "ROCWRIGHT_RUNTIME_DIR": str(self.folder / "runtime"),
            "ROCWRIGHT_CATALOG": str(self.folder / "sources/catalog"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        """The command, as a user calls it."""
        return subprocess.Popen(
            [sys.executable, "-m", "rocwright", *words],
            cwd=self.project,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> Ended:
        """The command to its end, within five minutes."""
        running = self.start(*words)
        out, said = running.communicate(timeout=300)
        try:
            told = json.loads(out)
        except ValueError:
            told = {}
        return Ended(running.returncode, told if isinstance(told, dict) else {"rows": told}, said)

    def build(self) -> Ended:
        return self.run("build", "--json", "--engine", "bubblewrap")

    def is_right(self, built: Ended) -> bool:
        """Whether a build ended well, with the bytes of an undisturbed one, laid out as it says."""
        artifacts = built.told.get("artifacts", [])
        return (
            built.status == 0
            and {one["filename"]: one["sha256"] for one in artifacts} == self.right
            and all(
                sha256(Path(one["path"]).read_bytes()).hexdigest() == one["laid_out"]["sha256"]
                for one in artifacts
            )
        )

    def forget_steps(self) -> None:
        """As if nothing but the root file system had ever been built."""
        store = self.store
        kept = {one.sha256 for record in records(store) if record.kind == "base" for one in record.outputs}
        for record in records(store):
            if record.kind != "base":
                store.local.remove("record", record.key)
        for digest in [file.name for file in store.local.files()]:
            if digest not in kept:
                store.local.remove("file", digest)

    def faults(self) -> list[str]:
        """What is wrong in the store, read file by file and not by rocwright's own checks."""
        found = [
            f"{path.name[:12]} holds other bytes"
            for path in (self.home.store / "blobs").glob("??/*")
            if sha256(path.read_bytes()).hexdigest() != path.name
        ]
        store = self.store
        found += [
            f"{record.step} names {one.filename}, which is not there"
            for record in records(store)
            for one in record.outputs
            if not store.has(one.sha256, one.size)
        ]
        return found

    def left(self, seconds: float = 30) -> list[str]:
        """Processes, mounts and sandboxes that are still there after so many seconds."""
        end = time.monotonic() + seconds
        while True:
            mounts = Path("/proc/mounts").read_text().splitlines()
            runtime = self.folder / "runtime"
            found = processes_of(self.home)
            found += [line for line in mounts if str(runtime) in line]
            found += [str(path) for path in runtime.glob("*") if path.is_dir()]
            if not found or time.monotonic() > end:
                return found
            time.sleep(0.1)

    @contextmanager
    def copied(self, there: Path) -> Iterator[Subject]:
        """The same in another folder, to do something to; removed at the end."""
        shutil.copytree(self.folder, there, symlinks=True)
        try:
            yield Subject(there, self.right)
        finally:
            remove_tree(there)


def make_subject(folder: Path) -> Subject:
    """A project whose root file system is in the store, and nothing else; a key to sign with."""
    scratch = folder / "scratch"
    scratch.mkdir(parents=True)
    asked = ["/usr/bin/gcc", "-print-prog-name=cc1"]
    cc1 = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    make_tiny_root(
        scratch / "root.tar.zst", scratch, more=("/usr/bin/gcc", "/usr/bin/as", "/usr/bin/ccache", cc1)
    )
    make_sources(folder / "sources", COMPONENTS)
    project = open_project(folder / "sources", folder / "home")
    put_roots(project, scratch / "root.tar.zst")
    lock = read_lock(folder / "sources/rocwright.lock")
    write_request(folder / "project/rocwright.toml", lock.request)
    write_lock(folder / "project/rocwright.lock", lock)
    remove_tree(scratch)
    bare = Subject(folder, {})
    assert bare.run("attest", "key", "--json").status == 0
    built = bare.build()
    assert built.status == 0, built.said
    return Subject(folder, {one["filename"]: one["sha256"] for one in built.told["artifacts"]})
