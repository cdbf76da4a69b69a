"""pip and uv install from an index: from its server and its files, by GPU, after a cut connection too."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rocwheel.wheels.index.yanks import yank
from rocwheel_samples.index_making import index, make_wheel
from rocwright.home import Home

pytestmark = pytest.mark.real


@pytest.fixture(scope="session")
def tools(sources_home: Home) -> Path:
    """The programs of a virtual environment with the newest pip and uv."""
    place = sources_home.path / "index-tools"
    if not (place / "bin" / "uv").exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        words = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "-U", "pip", "uv"]
        subprocess.run([place / "bin" / "python", *words], check=True)
    return place / "bin"


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """app needs lib (one is withdrawn, one for another Python) and kernels, one wheel for each GPU."""
    folder = tmp_path / "wheels"
    make_wheel(folder, "app", needs=("lib>=1", "kernels"))
    make_wheel(folder / "libs", "lib", "1.0")
    make_wheel(folder / "libs", "lib", "1.5", requires=">=99")
    make_wheel(folder / "libs", "lib", "2.0")
    make_wheel(folder, "kernels", "1.0+a", targets=("gfx1151",))
    make_wheel(folder, "kernels", "1.0+b", targets=("gfx1030",))
    yank(folder, "lib", "2.0", "wrong")
    return folder


@dataclass
class Server:
    """A running `rocwright wheel index serve`."""

    port: int
    lines: list[str] = field(default_factory=list)

    def url(self, view: str = "", port: int = 0) -> str:
        return f"http://127.0.0.1:{port or self.port}/{f'{view}/' if view else ''}simple/"


@contextmanager
def serving(folder: Path, home: Home) -> Iterator[Server]:
    words = [sys.executable, "-m", "rocwright", "wheel", "index", "serve", str(folder)]
    env = os.environ | {"ROCWRIGHT_HOME": str(home.path)}
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        assert first.startswith("serving "), first
        server = Server(int(first.rpartition(":")[2].partition("/")[0]))
        stream = process.stderr

        def read() -> None:
            server.lines.extend(line.rstrip() for line in stream)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            yield server
        finally:
            process.terminate()
            process.wait(20)
            reader.join()


@contextmanager
def static(folder: Path) -> Iterator[str]:
    """The folder by a server that knows of no index."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def clean() -> dict[str, str]:
    """The environment without the settings of this machine's installers."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    return kept | {"NO_PROXY": "127.0.0.1", "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}


def run(*words: str | Path) -> str:
    done = subprocess.run(words, env=clean(), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def pip(tools: Path, url: str, *words: str | Path) -> str:
    return run(
        *(tools / "python", "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check"),
        *("--index-url", url, *words),
    )


def uv(tools: Path, *words: str | Path) -> str:
    return run(tools / "uv", "pip", *words, "--no-cache", "--python", tools / "python")


def installed(target: Path) -> set[str]:
    return {one.name.removesuffix(".dist-info") for one in target.glob("*.dist-info")}


EXPECTED = {"app-1.0", "lib-1.0"}


def test_pip_and_uv_install_from_the_server(wheels: Path, home: Home, tools: Path, tmp_path: Path) -> None:
    with serving(wheels, home) as server:
        pip(tools, server.url(), "--target", tmp_path / "pip", "app")
        uv(tools, "install", "--default-index", server.url(), "--target", tmp_path / "uv", "app")
    assert installed(tmp_path / "pip") == installed(tmp_path / "uv") == EXPECTED | {"kernels-1.0+b"}


def test_pip_and_uv_install_from_the_view_of_a_gpu(
    wheels: Path, home: Home, tools: Path, tmp_path: Path
) -> None:
    with serving(wheels, home) as server:
        url = server.url("gfx1151")
        pip(tools, url, "--target", tmp_path / "pip", "app")
        uv(tools, "install", "--default-index", url, "--target", tmp_path / "uv", "app")
    assert installed(tmp_path / "pip") == installed(tmp_path / "uv") == EXPECTED | {"kernels-1.0+a"}


@pytest.mark.parametrize("out", ["", "out"])
def test_pip_and_uv_install_from_the_files(
    wheels: Path, home: Home, tools: Path, tmp_path: Path, out: str
) -> None:
    place = tmp_path / out if out else wheels
    index(wheels, home, str(place))
    with static(place) as address:
        pip(tools, f"{address}/simple/", "--target", tmp_path / "pip", "app")
        uv(
            *(tools, "install", "--default-index", f"{address}/gfx1151/simple/"),
            *("--target", tmp_path / "uv", "app"),
        )
    assert installed(tmp_path / "pip") == EXPECTED | {"kernels-1.0+b"}
    assert installed(tmp_path / "uv") == EXPECTED | {"kernels-1.0+a"}


def test_pip_and_uv_resolve_from_metadata_alone(
    wheels: Path, home: Home, tools: Path, tmp_path: Path
) -> None:
    (tmp_path / "wanted.in").write_text("app\n")
    with serving(wheels, home) as server:
        report = tmp_path / "report.json"
        pip(tools, server.url(), "--dry-run", "--ignore-installed", "--report", report, "app")
        uv(tools, "compile", "--default-index", server.url(), tmp_path / "wanted.in")
    found = json.loads(report.read_text())["install"]
    assert {one["metadata"]["name"] for one in found} == {"app", "lib", "kernels"}
    files = [line.split()[1] for line in server.lines if " /files/" in line]
    assert len(files) >= 6
    assert [one for one in files if not one.endswith(".whl.metadata")] == []


def test_pip_goes_on_where_a_connection_was_cut(
    wheels: Path, home: Home, tools: Path, tmp_path: Path
) -> None:
    path = make_wheel(wheels, "big", files={"big/data": os.urandom(2_000_000)})
    with serving(wheels, home) as server, cutting(server.port, 1_000_000) as port:
        pip(tools, server.url(port=port), "--resume-retries", "5", "--target", tmp_path / "pip", "big")
    assert installed(tmp_path / "pip") == {"big-1.0"}
    (line,) = [line for line in server.lines if path.name in line and " 206 " in line]
    assert line.split()[4].startswith("bytes=")
    assert int(line.split()[3]) < path.stat().st_size


@contextmanager
def cutting(port: int, after: int) -> Iterator[int]:
    """A port before another that cuts the first connection that brought `after` bytes."""
    listening = socket.create_server(("127.0.0.1", 0))
    cut = threading.Event()

    def forward(source: socket.socket, target: socket.socket, most: int) -> None:
        passed = 0
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
                passed += len(data)
                if passed > most and not cut.is_set():
                    cut.set()
                    break
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            inner = socket.create_connection(("127.0.0.1", port))
            for pair, most in (((client, inner), 1 << 60), ((inner, client), after)):
                threading.Thread(target=forward, args=(*pair, most), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    with listening:
        yield listening.getsockname()[1]
