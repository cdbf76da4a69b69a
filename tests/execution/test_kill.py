"""A build that is killed again and again, at random moments: nothing is lost, and nothing wrong is used."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import time
from hashlib import sha256
from pathlib import Path

import psutil
import pytest
from samples.project import TinyProject, make_sources, open_project, put_roots, start

from rocwright.home import Home
from rocwright.plan.make import make_plan
from rocwright.store.gc import check_whole
from rocwright.store.model import records

KILLS = 18


@pytest.mark.real
@pytest.mark.nightly
def test_a_build_killed_at_any_moment_goes_on_and_ends_with_the_right_bytes(
    home: Home, engine: str, tiny_root: Path, tmp_path: Path
) -> None:
    sources, runtime = tmp_path / "sources", tmp_path / "run"
    make_sources(sources)
    project = open_project(sources, home.path)
    put_roots(project, tiny_root)
    right, seconds = whole_build(project, sources, runtime)
    moments = random.Random(20251121)
    finished = 0
    for _ in range(KILLS):
        if not any_left(project):
            finished += 1
            forget_all(project)
        running = start(sources, home.path, runtime)
        assert running.stdout is not None
        running.stdout.readline()
        time.sleep(moments.uniform(0, seconds))
        whole = moments.random() < 0.7
        victim = running.pid if whole else some_child(running.pid, moments)
        kill(victim)
        if whole:
            running.wait()
        out, err = running.communicate(timeout=60)
        assert nothing_left(project, runtime), processes_of(home)
        assert nothing_wrong(project)
        if not whole and running.returncode == 0:
            assert json.loads(out.splitlines()[-1])["artifacts"] == right, err
    assert finished < KILLS, "no kill came in the middle of a build"
    again, _ = whole_build(project, sources, runtime)
    assert again == right
    verdict = check_whole(project.store)
    assert (verdict.damaged, verdict.incomplete) == ((), ())


def whole_build(project: TinyProject, sources: Path, runtime: Path) -> tuple[dict[str, str], float]:
    """Build to the end: the artifacts with their digests, and how long it took."""
    begun = time.monotonic()
    running = start(sources, project.home.path, runtime)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 0, err
    told = json.loads(out.splitlines()[-1])
    assert told["failures"] == {}
    assert len(told["artifacts"]) == 3
    for name, digest in told["artifacts"].items():
        assert sha256((project.output / "tiny" / name).read_bytes()).hexdigest() == digest
    return told["artifacts"], time.monotonic() - begun


def some_child(pid: int, chance: random.Random) -> int:
    """One of the processes that the build started: a step's, a sandbox's, a command's."""
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        children = []
    return chance.choice([one.pid for one in children] or [pid])


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def any_left(project: TinyProject) -> bool:
    steps = make_plan(project.locked, project.catalog).steps
    return any(
        project.store.record(step.key) is None for step in steps if not step.name.startswith("packages/")
    )


def forget_all(project: TinyProject) -> None:
    """As if nothing but the root had ever been built."""
    kept = {
        output.sha256
        for record in records(project.store)
        if record.kind == "base"
        for output in record.outputs
    }
    for record in records(project.store):
        if record.kind != "base":
            project.store.local.remove("record", record.key)
    for digest in [file.name for file in project.store.local.files()]:
        if digest not in kept:
            project.store.local.remove("file", digest)


def nothing_wrong(project: TinyProject) -> bool:
    """Every file of the store is what its name says, and every record has its outputs."""
    for path in (project.home.store / "blobs").glob("??/*"):
        assert sha256(path.read_bytes()).hexdigest() == path.name
    for record in records(project.store):
        assert all(project.store.has(one.sha256, one.size) for one in record.outputs), record.step
    return True


def processes_of(home: Home) -> list[str]:
    """Processes whose command line or environment names this test's home."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
            told = words + (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if str(home.path).encode() in told and state != "Z" and int(entry.name) != os.getpid():
            found.append(words.replace(b"\0", b" ").decode(errors="replace"))
    return found


def nothing_left(project: TinyProject, runtime: Path) -> bool:
    """No process runs, nothing is mounted, no sandbox is kept: at once, or some moments after a kill."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        mounted = str(project.home.path.parent) in Path("/proc/mounts").read_text()
        kept = [path for path in runtime.glob("*") if path.is_dir()]
        if not (processes_of(project.home) or mounted or kept):
            return True
        time.sleep(0.1)
    return False
