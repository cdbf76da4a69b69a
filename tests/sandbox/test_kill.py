"""SIGKILL of the process that drives a sandbox leaves nothing running, mounted or stored."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rocwright.sandbox import Engine, cgroup, state, sweep

pytestmark = pytest.mark.timing

DRIVER = """
import sys
from pathlib import Path
from rocwright.sandbox import ENGINES, SandboxJob, run
argv = ("sh", "-c", "echo begun; sleep " + sys.argv[2] + " & sleep " + sys.argv[2])
job = SandboxJob(root=Path("/"), argv=argv, env={"PATH": "/usr/bin:/bin"})
run(ENGINES[sys.argv[1]], job, lambda line: print(line, flush=True))
"""


@pytest.fixture
def number() -> str:
    """Seconds to sleep that tell this test's processes from all others."""
    return f"8{secrets.randbelow(10**9):09}"


def _start(engine: Engine, number: str, home: Path) -> subprocess.Popen[str]:
    env = {**os.environ, "ROCWRIGHT_RUNTIME_DIR": str(home)}
    argv = (sys.executable, "-c", DRIVER, engine.name, number)
    return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True)


def _until(holds: Callable[[], bool], seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _commands() -> list[str]:
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                found.append(
                    Path(entry.path, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
            except OSError:
                continue
    return found


def _stored(engine: Engine) -> str:
    match engine.name:
        case "podman":
            argv: tuple[str, ...] = ("podman", "ps", "--all", "--format", "{{.Names}}")
        case "buildah":
            argv = ("buildah", "containers", "--format", "{{.ContainerName}}")
        case _:
            return ""
    return subprocess.run(argv, capture_output=True, text=True).stdout


def _left(engine: Engine, driver: int, number: str, home: Path) -> list[str]:
    """Everything that tells of the sandboxes of one driving process."""
    name = f"rocwright-{driver}-"
    commands = [each for each in _commands() if f"sleep {number}" in each or name in each]
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if name in line]
    groups = [at for at, _, _ in os.walk("/sys/fs/cgroup") if name in at]
    stored = [line for line in _stored(engine).splitlines() if line.startswith(name)]
    return [*commands, *mounts, *groups, *stored, *(str(each) for each in home.iterdir())]


def test_a_kill_while_the_job_runs_leaves_nothing(engine: Engine, number: str, tmp_path: Path) -> None:
    driver = _start(engine, number, tmp_path)
    assert driver.stdout is not None and driver.stdout.readline() == "begun\n"
    assert _left(engine, driver.pid, number, tmp_path) != []
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    assert _until(lambda: _left(engine, driver.pid, number, tmp_path) == []), _left(
        engine, driver.pid, number, tmp_path
    )


def test_a_kill_while_the_sandbox_is_made_leaves_nothing(engine: Engine, number: str, tmp_path: Path) -> None:
    driver = _start(engine, number, tmp_path)
    assert _until(lambda: any(tmp_path.iterdir()))
    time.sleep(secrets.randbelow(150) / 1000)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    assert _until(lambda: _left(engine, driver.pid, number, tmp_path) == []), _left(
        engine, driver.pid, number, tmp_path
    )


@pytest.mark.parametrize("hierarchy", ["memory", "cpu", "unified"])
def test_what_an_engine_starts_while_it_is_undone_is_ended_too(
    number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hierarchy: str
) -> None:
    monkeypatch.setenv("ROCWRIGHT_RUNTIME_DIR", str(tmp_path))
    folder = state.new_folder()
    group = cgroup.create(folder.name)
    if group is None:
        pytest.skip("no cgroup may be made here")
    # podman's monitor is in that of cpu alone; with version 2 there is one
    above = Path("/sys/fs/cgroup", hierarchy) if group.version == 1 else Path("/sys/fs/cgroup")
    place = above / group.path.lstrip("/")
    place.mkdir(parents=True, exist_ok=True)
    starts = f"sleep {number} > /dev/null 2>&1 & echo $! > {place}/cgroup.procs"
    state.write_record(folder, (("env", "-i", "PATH=/usr/bin:/bin", "sh", "-c", starts),), group)
    state.dispose(folder)
    assert not [each for each in _commands() if f"sleep {number}" in each]
    assert not folder.exists() and cgroup.folders(group.path) == []


def test_a_sweep_removes_what_a_dead_owner_left(
    number: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCWRIGHT_RUNTIME_DIR", str(tmp_path))
    gone = tmp_path / "rocwright-999999999-1-1"
    (gone / "root").mkdir(parents=True)
    ours = tmp_path / f"rocwright-{os.getpid()}-1-1"
    ours.mkdir()
    left = subprocess.Popen(("sleep", number), env={"ROCWRIGHT_SANDBOX": gone.name})
    assert set(sweep()) == {ours.name, gone.name}
    assert left.wait(5) == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_a_later_process_with_the_number_of_one_of_the_sandbox_is_not_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with subprocess.Popen(("sleep", "100")) as later:
        # found by its mark, and then its number is another's
        looks = iter([[later.pid], [], []])
        monkeypatch.setattr(state, "_marked", lambda name: next(looks))
        state.kill_all("rocwright-1-2-3", None)
        assert later.poll() is None
        looks = iter([[later.pid], [later.pid], []])
        state.kill_all("rocwright-1-2-3", None)
        assert later.wait(10) == -signal.SIGKILL


def test_a_later_process_with_the_number_of_one_of_the_cgroup_is_not_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen(("sleep", "100")) as later:
        looks = iter([frozenset({later.pid}), frozenset(), frozenset()])
        monkeypatch.setattr(cgroup, "_members", lambda folder: next(looks))
        cgroup.kill(tmp_path)
        assert later.poll() is None
        looks = iter([frozenset({later.pid})] * 2 + [frozenset()])
        cgroup.kill(tmp_path)
        assert later.wait(10) == -signal.SIGKILL
