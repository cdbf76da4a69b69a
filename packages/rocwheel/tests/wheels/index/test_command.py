"""`rocwheel index` as it is typed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from rocwheel.home import Home
from rocwheel_samples.index_making import make_wheel

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    make_wheel(folder, "plain")
    make_wheel(folder, "kernels", targets=("gfx1151",))
    return folder


def test_build_says_what_it_did_and_ends_with_12_where_files_were_left_out(
    rocwheel: Command, wheels: Path
) -> None:
    done = rocwheel("index", "build", str(wheels))
    assert done.returncode == 0
    assert "2 wheels listed, 2 read" in done.stdout
    assert "gfx1151/simple" in done.stdout
    (wheels / "bad-1.0-py3-none-any.whl").write_bytes(b"bad")
    done = rocwheel("index", "build", str(wheels), "--json")
    assert done.returncode == 12
    told = json.loads(done.stdout)
    assert (told["listed"], told["read"], told["written"]["views"]) == (2, 1, ["gfx1151"])
    assert [one["path"] for one in told["problems"]] == ["bad-1.0-py3-none-any.whl"]
    assert "left out  bad-1.0-py3-none-any.whl" in done.stderr


def test_list_shows_which_gpu_each_wheel_is_for(rocwheel: Command, wheels: Path) -> None:
    done = rocwheel("index", "list", str(wheels))
    rows = {line.split()[0]: line for line in done.stdout.splitlines()[1:]}
    assert "gfx1151" in rows["kernels"]
    assert "every GPU" in rows["plain"]
    told = json.loads(rocwheel("index", "list", str(wheels), "--gpu", "gfx1030", "--json").stdout)
    assert [one["project"] for one in told["wheels"]] == ["plain"]


def test_check_ends_with_12_where_something_is_wrong(rocwheel: Command, wheels: Path) -> None:
    rocwheel("index", "build", str(wheels))
    assert rocwheel("index", "check", str(wheels)).stdout == "no problems found\n"
    (wheels / "plain-1.0-py3-none-any.whl").unlink()
    done = rocwheel("index", "check", str(wheels), "--json")
    assert done.returncode == 12
    assert {one["place"] for one in json.loads(done.stdout)} == {
        "simple/plain/index.v1_json",
        "gfx1151/simple/plain/index.v1_json",
    }


def test_all_mends_pages_that_were_changed_by_hand(rocwheel: Command, wheels: Path) -> None:
    rocwheel("index", "build", str(wheels))
    (wheels / "simple/plain/index.html").write_text("")
    assert "0 pages written" in rocwheel("index", "build", str(wheels)).stdout
    assert "1 page written" in rocwheel("index", "build", str(wheels), "--all").stdout
    assert rocwheel("index", "check", str(wheels)).returncode == 0


def test_a_yank_and_back(rocwheel: Command, wheels: Path) -> None:
    words = ("index", "yank", "Plain", "1.0", "--in", str(wheels))
    assert rocwheel(*words, "--reason", "wrong").returncode == 0
    assert "wrong" in rocwheel("index", "list", str(wheels)).stdout
    assert rocwheel(*words, "--reason", "wrong").returncode == 2
    assert rocwheel(*words, "--undo").returncode == 0
    assert rocwheel(*words, "--undo").returncode == 2
    assert rocwheel("index", "yank", "plain", "new", "--in", str(wheels)).returncode == 2


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1", "no such host"])
def test_serve_says_where_it_cannot_listen(rocwheel: Command, wheels: Path, host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = rocwheel("index", "serve", str(wheels), "--host", host, "--port", port)
    assert done.returncode == 2
    assert "cannot listen" in done.stderr


def test_serve_is_bounded_and_goes_by_its_names_alone(wheels: Path, home: Home) -> None:
    words = [
        sys.executable,
        "-m",
        "rocwheel",
        "index",
        "serve",
        str(wheels),
        "--name",
        "builds.example",
    ]
    env = os.environ | {"ROCWRIGHT_HOME": str(home.path)}
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stderr.readline())
        assert found
        place = ("127.0.0.1", int(found[1]))

        def told(asked: bytes) -> bytes:
            with socket.create_connection(place, timeout=20) as client:
                client.sendall(asked)
                return client.recv(12)

        try:
            get = b"GET /simple/ HTTP/1.1\r\nHost: %b\r\n%b\r\n"
            assert told(get % (b"localhost:1", b"")) == b"HTTP/1.1 200"
            assert told(get % (b"builds.example", b"")) == b"HTTP/1.1 200"
            assert told(get % (b"elsewhere.example", b"")) == b"HTTP/1.1 403"
            assert told(get % (b"localhost", b"Host: builds.example\r\n")) == b"HTTP/1.1 400"
            sent, before = 0, psutil.Process(process.pid).memory_info().rss
            with socket.create_connection(place, timeout=20) as client, contextlib.suppress(OSError):
                client.sendall(get % (b"localhost", b"Transfer-Encoding: chunked\r\n") + b"0\r\n")
                while sent < 2**27:
                    client.sendall(b"a:b\r\n" * 10_000)
                    sent += 50_000
            assert sent < 2**26
            assert psutil.Process(process.pid).memory_info().rss - before < 2**25
            assert told(get % (b"localhost", b"")) == b"HTTP/1.1 200"
        finally:
            process.terminate()
        assert "Traceback" not in process.stderr.read()
