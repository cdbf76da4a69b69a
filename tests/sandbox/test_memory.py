"""Whether a job was ended for memory: by the kernel's own counts, whichever limit it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocwright.sandbox import Ended, SandboxOutcome, cgroup, memory, run
from rocwright.sandbox.cgroup import Cgroup
from rocwright.sandbox.host import HostEngine
from rocwright.sandbox.memory import MemoryWatch, period
from rocwright.sandbox.pids import Pids
from tests.sandbox.sandbox_jobs import shell

pytestmark = pytest.mark.timing

HUNGRY = "head -c 400M /dev/zero | tail -n 1 > /dev/null"
DRIVER = f"""
import json, threading
from rocwright.sandbox import run
from rocwright.sandbox.host import HostEngine
from tests.sandbox.sandbox_jobs import shell
told = {{}}
def go(name, script):
    told[name] = str(run(HostEngine(), shell(script, memory=2**30), lambda line: None).ended)
both = (("quiet", "sleep 3"), ("hungry", "sleep 1; {HUNGRY}"))
jobs = [threading.Thread(target=go, args=one) for one in both]
for one in jobs: one.start()
for one in jobs: one.join()
print(json.dumps(told))
"""


@pytest.fixture
def small_room() -> Iterator[cgroup.Cgroup]:
    """A cgroup of 200 MiB."""
    room = cgroup.create(f"rocwright-test-{os.getpid()}")
    if room is None:
        pytest.skip("no cgroup can be made here")
    room.limit(200 * 2**20)
    yield room
    cgroup.kill(room.folder)
    cgroup.remove(room.path)


def test_only_the_job_that_was_killed_is_told_so_where_several_share_a_limit(
    small_room: cgroup.Cgroup,
) -> None:
    join = f'echo $$ > {small_room.procs} && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", join, "sh", sys.executable, "-c", DRIVER],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {"quiet": "exited", "hungry": "out of memory"}


def kills(script: str, after: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SandboxOutcome:
    """Run a job in no cgroup of its own, while the machine's count goes from 3 to `after`."""
    count = tmp_path / "vmstat"
    count.write_text("pgfault 7\noom_kill 3\n")
    monkeypatch.setattr(memory, "VMSTAT", count)
    monkeypatch.setattr(cgroup, "places", lambda name: [])
    write = f"printf 'oom_kill {after}\\n' > {count}"
    return run(HostEngine(), shell(f"{write}; {script}"), lambda line: None)


@pytest.mark.parametrize("after", [3, 4])
@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ("exit 2", Ended.EXITED),
        ("exit 0", Ended.EXITED),
        ("kill -INT $$", Ended.SIGNALLED),
        ("kill -TERM $$", Ended.SIGNALLED),
        ("kill -KILL $$", Ended.SIGNALLED),
    ],
)
def test_whom_the_kernel_killed_elsewhere_on_the_machine_is_never_taken_for_the_job(
    script: str, ended: Ended, after: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outcome = kills(script, after, monkeypatch, tmp_path)
    assert outcome.ended is ended
    assert outcome.maybe_memory is ("KILL" in script and after == 4)


def test_a_kernel_that_counts_no_kills_is_no_reason_to_say_anything(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "vmstat").write_text("pgfault 7\n")
    monkeypatch.setattr(memory, "VMSTAT", tmp_path / "vmstat")
    assert memory.machine_kills() is None
    monkeypatch.setattr(memory, "VMSTAT", tmp_path / "none")
    assert memory.machine_kills() is None


def test_what_happened_in_a_cgroup_below_counts_from_when_it_is_there(tmp_path: Path) -> None:
    group = cgroup.Cgroup(folder=tmp_path, path="", version=1)
    limits = Pids(folder=tmp_path, apart=True)
    (tmp_path / "pids.events").write_text("max 0\n")
    assert (group.oom_kills(), limits.refused(), group.members()) == (0, False, frozenset())
    below = tmp_path / "engine" / "job"
    below.mkdir(parents=True)
    (below / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    (below / "pids.events").write_text("max 1\n")
    (below / "cgroup.procs").write_text("7\n8\n")
    assert (group.oom_kills(), limits.refused(), group.members()) == (2, True, frozenset({7, 8}))


def test_a_long_job_is_looked_at_less_often_and_never_seldom() -> None:
    assert [period(seconds) for seconds in (0, 1, 2, 4, 10, 3600)] == [0.1, 0.1, 0.1, 0.2, 0.5, 0.5]


def test_where_the_limit_is_kept_by_looking_it_is_looked_at_as_often_as_ever(tmp_path: Path) -> None:
    group = Cgroup(folder=tmp_path, path="", version=2)
    kept = MemoryWatch(group, limit=1, pids=list, on_excess=lambda: None)
    looked = MemoryWatch(None, limit=1, pids=list, on_excess=lambda: None)
    assert (kept._period(3600), looked._period(3600)) == (0.5, 0.1)
