"""What an engine is given for a job, and the end of processes that do not end with the engine."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rocbase.errors import SandboxError
from rocwright.sandbox import (
    Ended,
    Engine,
    Launch,
    SandboxJob,
    Scene,
    cgroup,
    foreground,
    interactive,
    memory,
    run,
    stall,
    state,
)
from rocwright.sandbox.engine import MARK, host_environment
from rocwright.sandbox.host import HostEngine
from tests.sandbox.sandbox_jobs import job, shell

MIB = 2**20
HUNGRY = "head -c 300M /dev/zero | tail -n 1 > /dev/null"
CROWD = "for each in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 2 & done; wait"


@dataclass(frozen=True, slots=True)
class Told(HostEngine):
    """The host, which keeps what it was given and has commands of its own before the job and after it."""

    before: str = ""
    around: str = ""
    after: str = ""
    scenes: list[Scene] = field(default_factory=list)

    def launch(self, scene: Scene) -> Launch:
        self.scenes.append(scene)
        argv = ("/bin/sh", "-c", self.around, "sh", *scene.command) if self.around else scene.command
        prepare, finish = ((("/bin/sh", "-c", each),) if each else () for each in (self.before, self.after))
        return Launch(argv=argv, prepare=prepare, finish=finish)


@pytest.fixture
def grouped() -> None:
    """Only where sandboxes have a cgroup of their own."""
    group = cgroup.create(f"rocwright-test-{os.getpid()}")
    if group is None:
        pytest.skip("no cgroup can be made here")
    cgroup.remove(group.path)


def number() -> str:
    """Seconds to sleep that tell the processes of one test from all others."""
    return f"60.{secrets.randbelow(10**9):09}"


def sleeps(number: str) -> bool:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                words = Path(entry.path, "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:2] == [b"sleep", number.encode()]:
                return True
    return False


def quiet(engine: Engine, job: SandboxJob) -> int:
    return run(engine, job, lambda line: None).code


@pytest.mark.parametrize(("begin", "terminal"), [(quiet, False), (interactive, True), (foreground, True)])
def test_an_engine_is_told_whether_there_is_a_terminal(
    begin: Callable[[Engine, SandboxJob], int], terminal: bool
) -> None:
    engine = Told()
    assert begin(engine, shell("exit 3")) == 3
    assert [scene.terminal for scene in engine.scenes] == [terminal]


@pytest.mark.usefixtures("grouped")
def test_an_engine_is_told_the_cgroup_in_which_the_job_runs() -> None:
    engine, lines = Told(), list[str]()
    run(engine, shell("cat /proc/self/cgroup"), lines.append)
    (scene,) = engine.scenes
    assert scene.cgroup is not None
    assert scene.cgroup.endswith(f"/{scene.name}")
    assert scene.cgroup in {line.split(":", 2)[2] for line in lines}


def test_on_a_terminal_the_engine_has_the_sandboxs_folder_and_its_few_variables(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "hunter2hunter2")
    engine = Told(around='pwd; tr "\\0" "\\n" < /proc/$$/environ; exec "$@"')
    assert interactive(engine, job("echo", "the job")) == 0
    (scene,) = engine.scenes
    folder, *variables, last = capfd.readouterr().out.splitlines()
    assert (folder, last) == (str(scene.folder), "the job")
    found = dict(line.split("=", 1) for line in variables)
    found.pop("PWD", None)  # the shell's own
    assert found == host_environment(scene.name)
    assert found[MARK] == scene.name


def test_commands_of_an_engine_before_and_after_run_in_the_sandboxs_folder_with_its_mark(
    tmp_path: Path,
) -> None:
    tell = f'{{ pwd; echo "${MARK}"; }} >> {tmp_path}/told'
    engine = Told(before=tell, after=tell)
    assert run(engine, job("true"), lambda line: None).ok
    (scene,) = engine.scenes
    assert (tmp_path / "told").read_text().splitlines() == [str(scene.folder), scene.name] * 2


@pytest.mark.usefixtures("grouped")
def test_what_left_the_session_of_a_job_that_takes_too_long_is_ended_with_it() -> None:
    lines: list[str] = []
    away = "setsid sh -c 'sleep 20 && echo late' & sleep 60"
    outcome = run(HostEngine(), shell(away, seconds=1), lines.append)
    assert outcome.ended is Ended.TIMED_OUT
    assert "late" not in lines


def test_what_left_the_session_of_an_engine_is_ended_by_its_mark_where_there_is_no_cgroup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cgroup, "places", lambda name: [])
    lines: list[str] = []
    # its output is the engine's, which a service of it may keep open
    engine = Told(around="setsid sh -c 'sleep 20 && echo late' & exec \"$@\"")
    outcome = run(engine, shell("sleep 60", seconds=1), lines.append)
    assert outcome.ended is Ended.TIMED_OUT
    assert "late" not in lines


@pytest.mark.usefixtures("grouped")
def test_a_sandbox_that_is_cut_short_is_ended_by_the_cgroup_on_its_record() -> None:
    seconds, found = number(), list[Path | None]()

    def refuse(line: str) -> None:
        ours = [
            one.name for one in state.home().iterdir() if state.owner_of(one.name) == state.this_process()
        ]
        found.extend(state.cgroup_of(name) for name in ours)
        raise KeyboardInterrupt(line)

    with pytest.raises(KeyboardInterrupt):
        run(HostEngine(), shell(f"setsid sh -c 'echo begun; exec sleep {seconds}' & wait"), refuse)
    assert not sleeps(seconds)
    (group,) = found
    assert group is not None
    assert not group.exists()


@pytest.mark.usefixtures("grouped")
@pytest.mark.parametrize(
    ("first", "memory", "processes", "ended"),
    [
        (HUNGRY, 100 * MIB, 1000, Ended.OUT_OF_MEMORY),
        (CROWD, None, 6, Ended.TOO_MANY_PROCESSES),
    ],
)
def test_an_engine_that_meets_a_limit_before_the_job_begins_is_told_as_that(
    first: str, memory: int | None, processes: int, ended: Ended
) -> None:
    engine = Told(around=f"({first}) 2> /dev/null; exit 1")
    outcome = run(engine, job("true", memory=memory, processes=processes), lambda line: None)
    assert outcome.ended is ended


def test_an_engine_that_ends_before_the_job_begins_and_met_no_limit_could_not_start_it() -> None:
    with pytest.raises(SandboxError, match="could not start the job"):
        run(Told(around="exit 1"), job("true", memory=100 * MIB), lambda line: None)


@pytest.mark.usefixtures("grouped")
def test_only_a_job_that_stood_at_its_limit_and_got_nothing_done_is_told_as_stalled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quick = run(HostEngine(), shell("exit 0", memory=100 * MIB), lambda line: None)
    assert quick.stalled is False
    for name, value in (("SECONDS", 0.3), ("FAULTS", 0.0), ("FULL", 0.0)):
        monkeypatch.setattr(stall, name, value)
    monkeypatch.setattr(memory, "_STALL_PERIOD", 0.1)
    outcome = run(HostEngine(), shell("sleep 60", memory=100 * MIB), lambda line: None)
    assert (outcome.ended, outcome.stalled) == (Ended.OUT_OF_MEMORY, True)
