"""pip and uv install from an index: from its files, by GPU, and from rocwright-out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rocwheel.wheels.index.yanks import yank
from rocwheel_samples.index_making import index, make_wheel
from rocwright.home import Home
from rocwright.provenance.layout import write_index

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


@contextmanager
def static(folder: Path, asked: list[str] | None = None) -> Iterator[str]:
    """The folder by a server that knows of no index; `asked` are the paths that it is asked for."""

    class Handler(SimpleHTTPRequestHandler):
        def log_request(self, *_: object) -> None:
            if asked is not None:
                asked.append(self.path)

    handler = partial(Handler, directory=str(folder))
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


@pytest.mark.parametrize("out", ["", "out"])
def test_pip_and_uv_install_from_the_files(wheels: Path, tools: Path, tmp_path: Path, out: str) -> None:
    place = tmp_path / out if out else wheels
    index(wheels, place)
    with static(place) as address:
        pip(tools, f"{address}/simple/", "--target", tmp_path / "pip", "app")
        uv(
            *(tools, "install", "--default-index", f"{address}/gfx1151/simple/"),
            *("--target", tmp_path / "uv", "app"),
        )
    assert installed(tmp_path / "pip") == EXPECTED | {"kernels-1.0+b"}
    assert installed(tmp_path / "uv") == EXPECTED | {"kernels-1.0+a"}


def test_pip_and_uv_resolve_from_metadata_alone(wheels: Path, tools: Path, tmp_path: Path) -> None:
    (tmp_path / "wanted.in").write_text("app\n")
    index(wheels)
    asked: list[str] = []
    with static(wheels, asked) as address:
        report = tmp_path / "report.json"
        words = ("--dry-run", "--ignore-installed", "--report", report, "app")
        pip(tools, f"{address}/simple/", *words)
        uv(tools, "compile", "--default-index", f"{address}/simple/", tmp_path / "wanted.in")
    found = json.loads(report.read_text())["install"]
    assert {one["metadata"]["name"] for one in found} == {"app", "lib", "kernels"}
    files = [path for path in asked if ".whl" in path]
    assert len(files) >= 6
    assert [one for one in files if not one.endswith(".whl.metadata")] == []


def test_pip_installs_from_what_builds_lay_out(wheels: Path, tools: Path, tmp_path: Path) -> None:
    out = tmp_path / "rocwright-out"
    for path in sorted(wheels.rglob("*.whl")):
        write_index(out, [path])
    pip(tools, (out / "simple").as_uri(), "--target", tmp_path / "pip", "app")
    assert installed(tmp_path / "pip") == {"app-1.0", "lib-2.0", "kernels-1.0+b"}
