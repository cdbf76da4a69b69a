"""A sandbox that stands at its limit and gets nothing done is ended, and none other."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from rocwright.sandbox import memory, stall
from rocwright.sandbox.cgroup import Cgroup
from rocwright.sandbox.memory import MemoryWatch
from rocwright.sandbox.stall import SECONDS, Stall

pytestmark = pytest.mark.timing


@pytest.fixture
def sleeper() -> Iterator[int]:
    """A process that does nothing."""
    with subprocess.Popen(["sleep", "100"]) as process:
        yield process.pid
        process.kill()


def stands(folder: Path, pid: int, *, faults: int, used: int = 990, version: int = 1) -> Cgroup:
    """The files of a cgroup with 1000 MiB, and a process in it."""
    names = ("memory.limit_in_bytes", "total_rss", "total_pgmajfault")
    limit, held, read = names if version == 1 else ("memory.max", "anon", "pgmajfault")
    (folder / limit).write_text(f"{1000 * 2**20}\n")
    (folder / "memory.stat").write_text(f"{held} {used * 2**20}\n{read} {faults}\n")
    (folder / "cgroup.procs").write_text(f"{pid}\n")
    return Cgroup(folder=folder, path="", version=version)


@pytest.mark.parametrize("version", [1, 2])
def test_what_only_reads_again_for_so_long_is_stuck(tmp_path: Path, sleeper: int, version: int) -> None:
    watch = Stall(stands(tmp_path, sleeper, faults=0, version=version))
    assert [watch.stuck(0), watch.stuck(SECONDS - 1)] == [False, False]
    stands(tmp_path, sleeper, faults=1000, version=version)
    assert [watch.stuck(SECONDS - 1), watch.stuck(SECONDS)] == [False, True]


def test_one_that_has_room_is_not_and_its_time_begins_when_it_is_full(tmp_path: Path, sleeper: int) -> None:
    watch = Stall(stands(tmp_path, sleeper, faults=0, used=900))
    assert not watch.stuck(0)
    stands(tmp_path, sleeper, faults=1000, used=900)
    assert not watch.stuck(SECONDS)
    stands(tmp_path, sleeper, faults=2000)
    assert [watch.stuck(SECONDS + 1), watch.stuck(2 * SECONDS)] == [False, True]


def test_one_that_waits_and_reads_nothing_is_not(tmp_path: Path, sleeper: int) -> None:
    watch = Stall(stands(tmp_path, sleeper, faults=1000))
    assert [watch.stuck(0), watch.stuck(10 * SECONDS)] == [False, False]


def test_one_that_works_or_starts_others_is_not(
    tmp_path: Path, sleeper: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked = [0.0]
    monkeypatch.setattr(stall, "_worked", lambda _: worked[0])
    watch = Stall(stands(tmp_path, sleeper, faults=0))
    assert not watch.stuck(0)
    stands(tmp_path, os.getpid(), faults=1000)
    assert not watch.stuck(SECONDS)
    worked[0] = 2 * stall.WORK * SECONDS
    stands(tmp_path, os.getpid(), faults=2000)
    assert not watch.stuck(2 * SECONDS)
    stands(tmp_path, os.getpid(), faults=3000)
    assert watch.stuck(3 * SECONDS)


def test_work_is_what_a_process_did_itself(sleeper: int) -> None:
    begun, end = stall._worked(os.getpid()), os.times().user + 0.1
    while os.times().user < end:
        pass
    assert stall._worked(os.getpid()) > begun
    assert stall._worked(sleeper) == 0


def test_one_that_is_stuck_is_ended_as_out_of_memory(
    tmp_path: Path, sleeper: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stall, "SECONDS", 0.2)
    monkeypatch.setattr(stall, "FAULTS", 0.0)
    monkeypatch.setattr(memory, "_STALL_PERIOD", 0.0)
    ended = Event()
    group = stands(tmp_path, sleeper, faults=7)
    with MemoryWatch(group, limit=1000 * 2**20, pids=list, on_excess=ended.set) as watch:
        assert ended.wait(20)
    assert watch.exhausted
    assert watch.stalled


def test_one_that_all_in_all_uses_little_is_not_full(tmp_path: Path, sleeper: int) -> None:
    watch = Stall(stands(tmp_path, sleeper, faults=0))
    usage = tmp_path / "memory.usage_in_bytes"
    usage.write_text(f"{900 * 2**20}\n")
    assert not watch.stuck(0)
    stands(tmp_path, sleeper, faults=1000)
    assert not watch.stuck(SECONDS)
    usage.write_text(f"{995 * 2**20}\n")
    stands(tmp_path, sleeper, faults=2000)
    assert watch.stuck(2 * SECONDS)
