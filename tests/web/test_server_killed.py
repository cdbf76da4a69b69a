"""A server that is killed: what it had begun ends with it, and nothing is begun twice."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from samples.project import TinyProject, make_sources, open_project, put_roots

from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock, write_request
from rocwright.records.model import Run
from rocwright.records.opening import open_records
from tests.execution.test_kill import nothing_left, processes_of

pytestmark = pytest.mark.timing

SLOW = {
    "alpha": {
        "kind": "archive",
        "run": ["echo it sleeps", "sleep 600"],
        "output": [{"name": "archive", "pattern": "alpha"}],
    }
}
IGNORING = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
"""As a shell starts what it puts into the background: Ctrl-C is not for it."""


@pytest.fixture
def project(
    tmp_path: Path, home: Home, engine: str, tiny_root: Path, monkeypatch: pytest.MonkeyPatch
) -> TinyProject:
    make_sources(tmp_path / "sources", SLOW)
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(tmp_path / "sources/catalog"))
    monkeypatch.setenv("ROCWRIGHT_RUNTIME_DIR", str(tmp_path / "run"))
    made = open_project(tmp_path / "sources", home.path)
    put_roots(made, tiny_root)
    write_request(tmp_path / "sources/rocwright.toml", read_lock(made.lock_path).request)
    return made


@contextmanager
def serving(project: TinyProject) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """`rocwright serve` in the project's folder, and somebody who has entered."""
    words = [*IGNORING, sys.executable, "-m", "rocwright", "serve", "--port", "0", "--engine", "bubblewrap"]
    folder = project.lock_path.parent
    with subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            address = process.stderr.readline().split()[-1]
            with httpx.Client(base_url=address, follow_redirects=True, timeout=60) as client:
                client.get(process.stderr.readline().split()[-1])
                yield process, client
        finally:
            process.kill()


def runs(home: Home) -> list[Run]:
    with open_records(home) as records:
        return records.runs()


def test_a_build_ends_with_the_server_that_was_killed(
    project: TinyProject, home: Home, tmp_path: Path
) -> None:
    with serving(project) as (process, client):
        secret = re.search(r'name="secret" value="([^"]+)"', client.get("/queue").text)
        assert secret
        client.post("/queue", data={"secret": secret[1], "own": "yes"}).raise_for_status()
        end = time.monotonic() + 60
        while not any(one.name == "alpha" and one.state == "running" for one in runs(home)[0].steps):
            assert time.monotonic() < end, runs(home)
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGKILL)
    assert nothing_left(project, tmp_path / "run"), processes_of(home)
    (run,) = runs(home)
    assert (run.state, run.outcome) == ("ended", "stopped")
    with serving(project) as (_, client):
        assert "stopped" in client.get(f"/runs/{run.id}").text
    assert len(runs(home)) == 1
