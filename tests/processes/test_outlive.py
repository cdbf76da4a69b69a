"""What waits beside a run: it sweeps where something was left, and costs hardly anything where not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocbase.folders.temporary import temporary_folder
from rocbase.processes.outlive import left_behind
from rocbase.processes.owner import Owner, start_time
from rocwright.sandbox import reaper

pytestmark = pytest.mark.timing


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of sandboxes; that of temporary files is beside it."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("ROCWRIGHT_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


@pytest.fixture
def gone() -> Owner:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return Owner(pid=process.pid, start=1)


@pytest.fixture
def living() -> Iterator[Owner]:
    with subprocess.Popen(["sleep", "100"]) as process:
        yield Owner(pid=process.pid, start=start_time(process.pid) or 0)
        process.kill()


def wait(words: tuple[str, ...]) -> int:
    return subprocess.run(words, check=False, timeout=60, stderr=subprocess.DEVNULL).returncode


def until(path: Path) -> bool:
    end = time.monotonic() + 120
    while path.exists() and time.monotonic() < end:
        time.sleep(0.05)
    return not path.exists()


def test_a_companion_sweeps_what_a_run_that_is_gone_left(runtime: Path, gone: Owner) -> None:
    sandbox = runtime / f"rocwright-{gone.pid}-{gone.start}-1"
    folder = runtime.parent / "tmp" / "rocwright-step-x.tmp"
    for each in (sandbox, folder):
        (each / "deep").mkdir(parents=True)
    assert wait(reaper.companion(gone)) == 0
    assert not sandbox.exists()
    assert not folder.exists()


def test_it_sweeps_what_earlier_runs_left_while_its_own_goes_on(runtime: Path, living: Owner) -> None:
    sandbox = runtime / "rocwright-999999999-1-1"
    own = runtime / f"rocwright-{living.pid}-{living.start}-1"
    for each in (sandbox, own):
        each.mkdir()
    with subprocess.Popen(reaper.companion(living)) as waiting:
        assert until(sandbox)
        assert waiting.poll() is None
        assert own.exists()
        os.kill(living.pid, 9)
        assert until(own)


def test_where_nothing_was_left_it_loads_nothing_that_sweeps(runtime: Path, gone: Owner) -> None:
    words = reaper.companion(gone)
    # neither rocwright nor what it needs can be imported so
    assert words[:3] == (sys.executable, "-I", "-S")
    # others may have left something in the last place, which is that of the whole machine
    broken = tuple("no.such.module" if word == reaper.__name__ else word for word in words[:-1])
    assert wait(broken) == 0
    (runtime / f"rocwright-{gone.pid}-{gone.start}-1").mkdir()
    assert wait(broken) != 0


def test_only_what_nobody_owns_or_holds_was_left_behind(tmp_path: Path, gone: Owner, living: Owner) -> None:
    def left(*names: str) -> bool:
        for name in names:
            (tmp_path / name).mkdir()
        try:
            return left_behind(str(tmp_path), [str(tmp_path), str(tmp_path / "none")])
        finally:
            for name in names:
                (tmp_path / name).rmdir()

    assert not left("another", "rocwright-1-x-1", "rocwright-1-2-3.new", "rocwright-kept")
    assert not left(f"rocwright-{living.pid}-{living.start}-1")
    assert left(f"rocwright-{living.pid}-{living.start + 1}-1")
    assert left(f"rocwright-{gone.pid}-{gone.start}-7")
    assert left("rocwright-step-x.tmp")
    with temporary_folder("test", place=tmp_path):
        assert not left()
    (tmp_path / "rocwright-link.tmp").symlink_to(tmp_path)
    assert not left()
