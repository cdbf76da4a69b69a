"""Servers that are really started in a sandbox: found, told apart, ended, and nothing left of them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rocbase.errors import CheckError, InputError, StepTimeoutError
from rocwright.home import Home
from rocwright.sandbox import lasting
from rocwright.serving import launch as launching
from rocwright.serving import ready, state, stop
from rocwright.serving.attend import attend
from tests.serving.conftest import Make

pytestmark = pytest.mark.timing


def test_a_server_is_ready_once_its_health_page_says_so(home: Home, launch: Make) -> None:
    made = launch()
    started, running = launching.start(made, home)
    log = state.log_of(home, "small")
    ready.wait_until_ready(started, 30, launching.living(running), log)
    assert ready.answers(started.url, "/health")
    assert state.runs(started)
    assert "begins" in log.read_text()


def test_stop_leaves_nothing(home: Home, launch: Make) -> None:
    started, running = launching.start(launch(), home)
    ready.wait_until_ready(started, 30, launching.living(running), state.log_of(home, "small"))
    assert stop.stop(home, "small")
    assert not lasting.processes(started.mark)
    assert not ready.answers(started.url, "/health")
    assert list(home.servers.iterdir()) == []
    assert running.wait() != 0


def test_a_server_that_ends_while_it_loads_is_explained_from_its_log(home: Home, launch: Make) -> None:
    started, running = launching.start(launch(how="dies"), home)
    with pytest.raises(CheckError) as caught:
        ready.wait_until_ready(started, 30, launching.living(running), state.log_of(home, "small"))
    assert "ended before it could be used" in caught.value.message
    assert "libamdhip64.so.6" in caught.value.cause + caught.value.detail
    assert not state.runs(started)


def test_one_that_never_gets_ready_is_given_up(home: Home, launch: Make) -> None:
    started, running = launching.start(launch(how="badly"), home)
    with pytest.raises(StepTimeoutError):
        ready.wait_until_ready(started, 1, launching.living(running), state.log_of(home, "small"))


@pytest.mark.parametrize(
    "name", ["../precious", ".", "..", "", "a/b", "Small", "small\n", "-small", "x" * 64]
)
def test_what_is_no_name_of_a_server_is_refused_and_no_folder_of_others_is_removed(
    home: Home, name: str
) -> None:
    precious = home.path / "precious"
    (precious / "x").mkdir(parents=True)
    (home.servers / "other").mkdir(parents=True)
    (home.servers / "a" / "b").mkdir(parents=True)
    for touch in (stop.stop, state.prepared, state.forget, state.claim, state.read):
        with pytest.raises(InputError, match="is not a name of a server"):
            touch(home, name)
    with pytest.raises(InputError, match="is not a name of a server"):
        stop.stop(home, str(precious))
    assert (precious / "x").is_dir() and (home.servers / "other").is_dir()
    assert (home.servers / "a" / "b").is_dir()


def test_one_that_loads_for_long_says_so(home: Home, launch: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "TELL_SECONDS", 0.0)
    started, running = launching.start(launch(how="badly"), home)
    said: list[str] = []
    log = state.log_of(home, "small")
    with pytest.raises(StepTimeoutError):
        ready.wait_until_ready(started, 1, launching.living(running), log, said.append)
    assert said and all(one.endswith("so far: rocwright logs small --follow") for one in said)


def test_a_process_that_only_has_the_number_is_neither_shown_as_running_nor_ended(
    home: Home, launch: Make
) -> None:
    made = launch()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as other:
        kept = made.state.model_copy(update={"pid": other.pid, "start": 1})
        state.keep(home, kept)
        assert not state.runs(kept)
        assert not stop.stop(home, "small", seconds=1)
        assert other.poll() is None
        other.kill()


def test_after_a_reboot_no_server_runs_and_nothing_is_ended(home: Home, launch: Make) -> None:
    started, _ = launching.start(launch(), home)
    before = started.model_copy(update={"boot": "another"})
    assert not state.runs(before)
    stop.end(before, seconds=1)
    assert state.runs(started)


def test_a_server_outlives_a_rocwright_that_is_killed_and_is_still_found_and_ended(
    home: Home, launch: Make
) -> None:
    made = launch()
    state.keep(home, made.state)
    # the one that starts it is killed before it can write down what it started
    code = (
        "import subprocess, sys, time; subprocess.Popen(sys.argv[1:], start_new_session=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, *made.argv], env=dict(made.env)) as starter:
        _until(lambda: ready.answers(made.state.url, "/health"))
        starter.send_signal(signal.SIGKILL)
    assert [(one.name, state.runs(one)) for one in state.servers(home)] == [("small", True)]
    assert stop.stop(home, "small")
    assert not lasting.processes(made.state.mark)


def test_a_server_in_the_foreground_ends_with_a_rocwright_that_is_killed(home: Home, launch: Make) -> None:
    made = launch(stays=False)
    code = (
        "import subprocess, sys, time; subprocess.Popen(sys.argv[1:], start_new_session=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, *made.argv], env=dict(made.env)) as starter:
        _until(lambda: ready.answers(made.state.url, "/health"))
        starter.send_signal(signal.SIGKILL)
    _until(lambda: not lasting.processes(made.state.mark))


def test_a_server_in_the_foreground_that_ends_by_itself_is_told_with_its_last_lines_and_leaves_nothing(
    home: Home, launch: Make
) -> None:
    started, running = launching.start(launch(), home)
    ready.wait_until_ready(started, 30, launching.living(running), state.log_of(home, "small"))
    running.send_signal(signal.SIGKILL)
    with pytest.raises(CheckError) as caught:
        attend(home, started, running)
    assert "small ended by itself" in caught.value.message
    assert "begins" in caught.value.detail
    assert list(home.servers.iterdir()) == []


def test_one_that_was_stopped_from_elsewhere_ended_well(home: Home, launch: Make) -> None:
    started, running = launching.start(launch(), home)
    ready.wait_until_ready(started, 30, launching.living(running), state.log_of(home, "small"))
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(attend, home, started, running)  # sees the end before the folder is gone
        stop.stop(home, "small")
        waits.result(30)
    assert list(home.servers.iterdir()) == []


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_rocwright_that_is_asked_to_end_or_loses_its_terminal_ends_its_server(
    home: Home, launch: Make, asked: signal.Signals
) -> None:
    """As the command does it: rocwheel's handling of signals around it."""
    made = launch()
    code = (
        "import subprocess, sys; from pathlib import Path; import click\n"
        "from rocbase.cli.run import run; from rocwright.home import Home\n"
        "from rocwright.serving import state; from rocwright.serving.attend import attend\n"
        "@click.command()\n"
        "@click.argument('home')\n"
        "def command(home):\n"
        "    kept = state.read(Home(Path(home)), 'small')\n"
        "    attend(Home(Path(home)), kept, subprocess.Popen(kept.command, start_new_session=True))\n"
        "run(command, lambda error: 1)\n"
    )
    state.keep(home, made.state)
    # what runs the tests may have it ignored, as nohup does
    words = ["env", f"--default-signal={asked.name.removeprefix('SIG')}", sys.executable, "-c", code]
    with subprocess.Popen([*words, str(home.path)], env=dict(made.env)) as starter:
        try:
            _until(lambda: ready.answers(made.state.url, "/health"))
            starter.send_signal(asked)
            assert starter.wait(30) == 130
        finally:
            starter.kill()
    assert not lasting.processes(made.state.mark)
    assert list(home.servers.iterdir()) == []


def test_a_server_that_was_in_the_foreground_stays_after_a_restart(home: Home, launch: Make) -> None:
    made = launch(stays=False)
    assert lasting.BOUND in made.argv
    words = (*made.argv, lasting.BOUND)
    stays = lasting.staying(words)
    assert stays.count(lasting.BOUND) == 1
    assert stays[-1] == lasting.BOUND, "a word of the server's own is left as it is"


def test_a_name_is_taken_once(home: Home, launch: Make) -> None:
    launch()
    with pytest.raises(InputError, match="running already"):
        state.claim(home, "small")


def test_a_server_sees_no_home_and_cannot_write_its_root(home: Home, launch: Make, tmp_path: Path) -> None:
    made = launch()
    words = [*made.argv[: made.argv.index("/usr/bin/python3")], "/bin/sh", "-c"]
    script = f"set -e; test ! -e {tmp_path}; test ! -e /home; test ! -w /; id -u"
    done = subprocess.run([*words, script], env=dict(made.env), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "1000"


def _until(true: object) -> None:
    assert callable(true)
    limit = time.monotonic() + 120
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.05)
