"""A program in an environment: what it sees, how it is ended, and how its end is told."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rocbase.errors import InputError
from rocwright import sandbox
from rocwright.home import Home
from rocwright.serving.environments import ABOUT, HOME, INSIDE, PLACE, Environment
from rocwright.serving.program import check_folder, check_homes, program_command, program_environment
from rocwright.sources.bases.roots import unpacked_root
from rocwright.store.local import LocalStore
from tests.engines import must_work
from tests.serving.conftest import listing

pytestmark = pytest.mark.timing

DRIVER = """
import os, sys
from pathlib import Path
from rocwright.home import Home
from rocwright.serving.environments import read
from rocwright.serving.program import run_program
home = Home(Path(sys.argv[1]))
engine = os.environ.get("TRIED_IN", "bubblewrap")
sys.exit(run_program(read(home, "x"), home, sys.argv[2:], engine=engine))
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.path.mkdir()
    return home


@pytest.fixture(params=["bubblewrap", "podman"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the program runs in."""
    must_work(sandbox.probe(sandbox.ENGINES[request.param]))
    monkeypatch.setenv("TRIED_IN", request.param)
    return str(request.param)


@pytest.fixture
def environment(home: Home, python_root: Path, engine: str) -> Environment:
    """One without wheels."""
    store = LocalStore(home.store)
    sha256, _ = store.put_file(python_root)
    unpacked_root(store, sha256, home.roots, print)
    made = Environment(
        key="x",
        stack="tiny",
        gpu=("gfx1151",),
        base="debian:sid",
        root=sha256,
        python="python3",
        wheels=(),
        env={"CARD_WANTS": "1"},
    )
    folder = made.folder(home)
    for name in (INSIDE, HOME):
        (folder / name).mkdir(parents=True)
    (folder / ABOUT).write_text(made.model_dump_json())
    return made


@contextmanager
def begin(
    home: Home, folder: Path, *argv: str, stdin: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program in the environment; end it with the test, which would wait for it otherwise."""
    folder.mkdir(exist_ok=True)
    words = [sys.executable, "-c", DRIVER, str(home.path), *argv]
    with subprocess.Popen(words, cwd=folder, stdin=stdin, stdout=subprocess.PIPE) as running:
        try:
            yield running
        finally:
            running.kill()


def output(home: Home, folder: Path, *argv: str) -> tuple[int, str]:
    with begin(home, folder, *argv, stdin=subprocess.DEVNULL) as running:
        said, _ = running.communicate(timeout=120)
        return running.returncode, said.decode()


def test_it_sees_its_folder_and_its_own_home_and_no_other(
    home: Home, environment: Environment, place: str, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    (tmp_path / "secret").write_text("x")
    script = "pwd; echo made > made; ls ..; echo kept > ~/kept; touch /rocwright/x || echo read-only"
    status, said = output(home, folder, "sh", "-c", script)
    assert (status, said.split()) == (0, [str(folder), "work", "read-only"])
    assert (folder / "made").read_text() == "made\n"
    assert (folder / "made").stat().st_uid == os.geteuid()
    assert (environment.folder(home) / HOME / "kept").read_text() == "kept\n"


def test_it_has_the_variables_of_the_card(
    home: Home, environment: Environment, place: str, tmp_path: Path
) -> None:
    _, said = output(home, tmp_path / "work", "sh", "-c", "echo $CARD_WANTS $VIRTUAL_ENV $HOME")
    assert said.split() == ["1", "/rocwright", "/rocwright-home"]


def test_the_command_of_a_dry_run_names_all_that_the_program_sees_and_writes_nothing(
    home: Home, environment: Environment, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    before = listing(home.path)
    words = program_command(environment, home, ["sh", "-c", "x"], env={"GIVEN": "a b"}, folder=folder)
    assert listing(home.path) == before
    text = "\n".join(words)
    assert words[0] == "bwrap" and words[-3:] == ("sh", "-c", "x")
    assert f"--ro-bind\n{home.roots / environment.root}\n/\n" in text
    assert f"--bind\n{folder}\n{folder}\n" in text
    assert f"--ro-bind\n{environment.folder(home) / INSIDE}\n{PLACE}\n" in text
    assert "CARD_WANTS=1" in words and "GIVEN=a b" in words


def test_what_is_piped_to_it_is_read_and_its_status_is_told(
    home: Home, environment: Environment, place: str, tmp_path: Path
) -> None:
    script = "read word; echo got $word; exit 7"
    with begin(home, tmp_path / "work", "sh", "-c", script, stdin=subprocess.PIPE) as running:
        said, _ = running.communicate(b"hello\n", timeout=120)
    assert (running.returncode, said) == (7, b"got hello\n")


def test_one_that_is_not_there_is_told_as_shells_do(
    home: Home, environment: Environment, place: str, tmp_path: Path
) -> None:
    assert output(home, tmp_path / "work", "nothing-of-that-name")[0] == 127


WAITS = "import signal, sys; print('begun', flush=True); signal.pause()"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_goes_on_to_it(
    home: Home, environment: Environment, place: str, tmp_path: Path, number: signal.Signals
) -> None:
    handle = f"signal.signal({int(number)}, lambda *_: sys.exit(40)); "
    program = WAITS.replace("print", f"{handle}print")
    with begin(home, tmp_path / "work", "python3", "-c", program) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"begun\n"
        running.send_signal(number)
        assert running.wait(60) == 40


def test_one_that_does_not_heed_it_is_ended_by_it(
    home: Home, environment: Environment, place: str, tmp_path: Path
) -> None:
    with begin(home, tmp_path / "work", "python3", "-c", WAITS) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"begun\n"
        running.terminate()
        assert running.wait(60) == 128 + signal.SIGTERM


def test_ctrl_c_interrupts_the_program_once_and_no_more(
    home: Home, environment: Environment, tmp_path: Path
) -> None:
    program = (
        "import sys, time\n"
        "try:\n    print('begun', sys.stdin.isatty(), flush=True)\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    time.sleep(0.5)\n"
        "print('goes on', flush=True)\nsys.exit(5)"
    )
    ours, theirs = pty.openpty()
    folder = tmp_path / "work"
    folder.mkdir()
    words = [sys.executable, "-c", ON_TERMINAL, DRIVER, str(home.path), "python3", "-c", program]
    with subprocess.Popen(
        words, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as running:
        os.close(theirs)
        said = until(ours, b"begun True")
        os.write(ours, b"\x03")
        said += until(ours, b"goes on")
        assert running.wait(60) == 5, said
    os.close(ours)


ON_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-c", *sys.argv[1:]])
"""
"""The terminal becomes the one that controls its session, so that Ctrl-C is a signal."""


def until(terminal: int, word: bytes) -> bytes:
    said, last = b"", time.monotonic() + 60
    while word not in said and time.monotonic() < last:
        said += os.read(terminal, 4096)
    assert word in said
    return said


def test_a_folder_with_a_home_in_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    person, home = tmp_path / "people" / "me", Home(tmp_path / "big" / "rocwright")
    (tmp_path / "link").symlink_to(person)
    for place in (person, tmp_path / "link"):
        monkeypatch.setenv("HOME", str(place))
        for folder in (Path("/"), tmp_path, person, tmp_path / "link"):
            with pytest.raises(InputError, match="your home is in it"):
                check_homes(folder, home)
    for folder in (tmp_path / "big", home.path):
        with pytest.raises(InputError, match="the home folder of rocwright is in it"):
            check_homes(folder, home)
    check_homes(person / "project", home)


def test_a_folder_of_the_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    (tmp_path / "srv" / "made").mkdir(parents=True)
    with pytest.raises(InputError, match="a folder of the system's own"):
        check_folder(Path("/srv"), tmp_path)
    check_folder(Path("/srv/made"), tmp_path)


def test_variables_of_the_caller_stay_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    monkeypatch.setenv("TERM", "vt100")
    made = Environment(
        key="x", stack="x", gpu=(), base="x", root="x", python="python3", wheels=(), env={"CARD_WANTS": "1"}
    )
    found = program_environment(made)
    assert (found["TERM"], found["CARD_WANTS"]) == ("vt100", "1")
    assert "SECRET_TOKEN" not in found
