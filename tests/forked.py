"""`rocwright` in a process of its own without the time in which Python begins and imports: a process that has
everything imported forks for each."""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

AT_START = ("LANG", "LC_", "PYTHON")
"""What variables begin with that only a Python that begins reads."""


class Forking:
    """The client's side of the process that forks."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = [sys.executable, "-m", "tests.forked", str(theirs.fileno())]
        root = Path(__file__).parents[1]
        self._process = subprocess.Popen(
            words, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, cwd=root
        )
        theirs.close()

    def close(self) -> None:
        self._control.close()
        self._process.wait()

    def run(
        self, words: Sequence[str], folder: Path, env: Mapping[str, str], timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """`rocwright` with these words in that folder, with what it printed."""
        argv = [sys.executable, "-m", "rocwright", *words]
        if any(
            os.environ.get(name) != env.get(name) for name in {*os.environ, *env} if name.startswith(AT_START)
        ):
            return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=timeout)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            reply, theirs = os.pipe()
            request = json.dumps([[*words], str(folder), dict(env)]).encode()
            socket.send_fds(self._control, [request], [out.fileno(), err.fileno(), theirs])
            os.close(theirs)
            with os.fdopen(reply) as told:
                killer = threading.Timer(timeout, os.kill, [int(told.readline()), signal.SIGKILL])
                killer.start()
                code = int(told.readline())
                killer.cancel()
            for file in (out, err):
                file.seek(0)
            return subprocess.CompletedProcess(argv, code, out.read().decode(), err.read().decode())


LEFT_OUT = (
    "rocwright.__main__",
    "rocwright.catalog.data",
    "rocwright.farm.dask",
)


def serve(control: socket.socket) -> None:
    """Fork for each request, until the client ends."""
    _import_all()
    waiting = set[int]()
    while True:
        request, (*fds,), _, _ = socket.recv_fds(control, 1 << 20, 3)
        waiting -= {pid for pid in waiting if os.waitpid(pid, os.WNOHANG)[0]}
        if not request:
            return
        waiting.add(pid := os.fork())
        if pid == 0:
            control.close()
            _wait_for_another(request, *fds)
        for fd in fds:
            os.close(fd)


def _import_all() -> None:
    import rocwright
    from rocwright.catalog.load import builtin_catalog

    for module in pkgutil.walk_packages(rocwright.__path__, "rocwright."):
        if not module.name.startswith(LEFT_OUT):
            importlib.import_module(module.name)
    builtin_catalog()
    assert threading.active_count() == 1
    gc.freeze()


def _wait_for_another(request: bytes, out: int, err: int, reply: int) -> NoReturn:
    pid = os.fork()
    if pid == 0:
        os.close(reply)
        words, folder, env = json.loads(request)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.close(out)
        os.close(err)
        _be(words, folder, env)
    os.close(out)
    os.close(err)
    os.write(reply, f"{pid}\n".encode())
    _, status = os.waitpid(pid, 0)
    os.write(reply, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _be(words: list[str], folder: str, env: dict[str, str]) -> NoReturn:
    """The command itself, in what it would find had Python begun."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv[1:] = words
    sys.path[0] = folder
    tempfile.tempdir = None
    time.tzset()
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), write_through=True)
    sys.stderr = io.TextIOWrapper(
        io.FileIO(2, "w", closefd=False), errors="backslashreplace", write_through=True
    )
    code = 1
    try:
        runpy.run_module("rocwright", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    with suppress(Exception):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
