"""The log of a server: bounded, whole when its server has ended, and followed over the bound."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rocbase.errors import InputError, InternalError
from rocwright.execution.follow_log import follow
from rocwright.home import Home
from rocwright.serving import log_writer, logs, state

pytestmark = pytest.mark.timing

KIB = 1024
LINES = """
import sys
for one in range({}):
    print(f"line {{one:06}} " + "x" * 50)
print("the end", file=sys.stderr)
"""


@pytest.fixture
def start(home: Home) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts a program of Python as a server whose log is bounded."""
    state.claim(home, "small")

    def begun(code: str, most: int = 8 * KIB) -> subprocess.Popen[bytes]:
        return logs.start_logged(home, "small", [sys.executable, "-c", code], dict(os.environ), limit=most)

    return begun


def read(log: Path) -> list[str]:
    return "".join(one.read_text() for one in logs.files_of(log)).splitlines()


def test_all_of_a_short_one_is_kept_and_for_its_owner_alone(
    home: Home, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    log = state.log_of(home, "small")
    start(LINES.format(3)).wait()
    logs.wait_until_written(log)
    assert [one[:11] for one in read(log)] == ["the end", "line 000000", "line 000001", "line 000002"] or [
        one[:11] for one in read(log)
    ] == ["line 000000", "line 000001", "line 000002", "the end"]
    assert logs.files_of(log) == [log]
    assert log.stat().st_mode & 0o777 == 0o600


def test_of_a_long_one_the_newest_is_kept_in_whole_lines(
    home: Home, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    log = state.log_of(home, "small")
    start(LINES.format(200_000), most=256 * KIB).wait()
    logs.wait_until_written(log)
    assert [one.name for one in logs.files_of(log)] == ["log.1", "log"]
    assert sum(one.stat().st_size for one in logs.files_of(log)) < 2 * (256 + 64) * KIB
    numbers = [int(one[5:11]) for one in read(log) if one != "the end"]
    assert numbers == list(range(numbers[0], 200_000)), "no line is lost between the two, or cut"
    assert sorted(one.name for one in log.parent.iterdir()) == ["log", "log.1", "log.lock"]


def test_follow_goes_on_in_the_file_that_takes_its_place(
    home: Home, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    log = state.log_of(home, "small")
    code = (
        "import time\n"
        'for one in range(60): print(f"line {one:06} " + "x" * 500, flush=True); time.sleep(0.03)\n'
    )
    running = start(code)
    told = "".join(follow(log, lambda: running.poll() is None or logs.is_written(log)))
    assert [int(one[5:11]) for one in told.splitlines()] == list(range(60))
    assert len(logs.files_of(log)) == 2, "it was over the bound"


def test_follow_goes_on_at_the_end_of_a_log_that_lost_its_middle(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("old\n" * 100)
    looks: list[int] = []

    def on() -> bool:
        looks.append(0)
        if len(looks) == 2:
            os.truncate(log, 40)
        elif len(looks) == 3:
            with log.open("a") as file:
                file.write("new\n")
        return len(looks) < 3

    assert "".join(follow(log, on)) == "old\n" * 100 + "new\n"


def test_a_server_goes_on_where_its_log_cannot_be_written(
    home: Home, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """As on a full disk, or where the folder is gone: a pipe that nobody reads would hold it up for ever."""
    running = start("import time; time.sleep(1)\n" + LINES.format(100_000))
    log = state.log_of(home, "small")
    for one in log.parent.iterdir():
        one.unlink()
    log.parent.rmdir()
    assert running.wait(60) == 0
    assert not log.parent.exists()


def test_the_writer_whose_folder_went_before_its_turn_reads_on(tmp_path: Path) -> None:
    """Else the server's next line would end it: its pipe would have no reader."""
    log = tmp_path / "folder" / "log"
    log.parent.mkdir()
    target = os.open(log, os.O_WRONLY | os.O_CREAT)
    log.unlink()
    log.parent.rmdir()
    source, end = os.pipe()
    with os.fdopen(end, "wb") as server:
        server.write(b"a line\n" * 1000)
    log_writer.write(source, str(log), target, 100)
    assert os.read(source, 1) == b""
    os.close(source)


@pytest.mark.parametrize("last", [b"last\n", b"x" * 300])
def test_a_line_that_comes_in_pieces_stays_whole_and_one_without_an_end_is_cut(
    tmp_path: Path, last: bytes
) -> None:
    log = tmp_path / "log"
    source, server = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with source:
        with server:
            for piece in (b"a" * 90 + b"\n", b"first half, ", b"second half\n", last, last, last):
                server.send(piece)
        log_writer.write(source.fileno(), str(log), os.open(log, os.O_WRONLY | os.O_CREAT), 100)
    if last.endswith(b"\n"):
        assert (tmp_path / "log.1").read_bytes() == b"a" * 90 + b"\nfirst half, second half\n"
        assert log.read_bytes() == last * 3
    else:
        assert sum(one.stat().st_size for one in tmp_path.iterdir()) < 1000


def test_the_starter_is_not_waited_for(home: Home, start: Callable[..., subprocess.Popen[bytes]]) -> None:
    begun = time.monotonic()
    running = start("import time; time.sleep(60)")
    assert time.monotonic() - begun < 30
    log = state.log_of(home, "small")
    assert logs.is_written(log)
    running.kill()
    running.wait()
    logs.wait_until_written(log)
    assert not logs.is_written(log)


def test_what_cannot_be_started_leaves_nothing_running(home: Home) -> None:
    state.claim(home, "small")
    log = state.log_of(home, "small")
    with pytest.raises(InputError, match="no-such-program"):
        logs.start_logged(home, "small", ["no-such-program"], {})
    logs.wait_until_written(log)
    assert not logs.is_written(log)
    state.forget(home, "small")
    with pytest.raises(InternalError, match="cannot be read"):
        logs.start_logged(home, "small", ["true"], {})


def test_a_link_in_the_place_of_the_log_is_not_followed(home: Home, tmp_path: Path) -> None:
    state.claim(home, "small")
    elsewhere = tmp_path / "elsewhere"
    state.log_of(home, "small").symlink_to(elsewhere)
    with pytest.raises(InternalError):
        logs.start_logged(home, "small", ["true"], {})
    assert not elsewhere.exists()
