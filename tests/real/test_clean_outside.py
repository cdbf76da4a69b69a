"""Caches and layers of other programs, found and removed by their own commands: in places of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from rocbase.processes.run import run as run_program

pytestmark = pytest.mark.real


def clean(*words: str) -> list[dict[str, object]]:
    """What `rocwright clean` finds of the kinds named, and with --yes removes."""
    done = run_program([sys.executable, "-m", "rocwright", "clean", *words, "--keep", "0", "--json"])
    assert done.ok, done.stderr
    told = json.loads(done.stdout)
    assert told.get("refused", []) == []
    return list(told["going"])


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An engine storage of the test's own."""
    if os.geteuid() != 0:
        pytest.skip("layers are made as root here")
    settings = tmp_path / "storage.conf"
    settings.write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{tmp_path}/graph"\nrunroot = "{tmp_path}/run"\n'
    )
    monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(settings))
    return tmp_path


def said(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("engine", ["buildah", pytest.param("podman", marks=pytest.mark.nightly)])
def test_layers_without_a_tag_go_and_those_with_one_stay(storage: Path, engine: str) -> None:
    images = []
    for name in ((), ("kept",)):
        container = said("buildah", "from", "scratch")
        (Path(said("buildah", "mount", container)) / "file").write_bytes(os.urandom(2_000_000))
        images.append(said("buildah", "commit", "--quiet", "--rm", container, *name))
    loose, kept = images
    kind = f"{engine}-layers"
    [found] = clean(kind, "--dry-run")
    assert str(found["name"]).removeprefix("sha256:") == loose
    assert 1_900_000 < int(str(found["size"])) < 2_200_000
    clean(kind, "--yes")
    assert clean(kind, "--dry-run") == []
    left = said("buildah", "images", "--quiet", "--no-trunc")
    assert [line.removeprefix("sha256:") for line in left.splitlines()] == [kept]


class Named(SimpleHTTPRequestHandler):
    """Files with a name for what is in them, without which pip keeps nothing."""

    def end_headers(self) -> None:
        self.send_header("ETag", f'"{self.path}"')
        super().end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """Addresses of wheels, as a page of links."""
    folder = tmp_path / "served"
    said(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), "six")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Named, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_the_caches_of_pip_and_uv_go_by_their_own_commands(
    served: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("pip", "uv"):
        monkeypatch.setenv(f"{program.upper()}_CACHE_DIR", str(tmp_path / program))
    programs = tmp_path / "programs"
    pip = (sys.executable, "-m", "pip")
    said(*pip, "install", "--quiet", "--target", str(programs), "uv")
    monkeypatch.setenv("PATH", f"{programs}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}")
    only = ("--quiet", "--no-index", "--find-links", served, "six")
    said(*pip, "download", "--trusted-host", "127.0.0.1", "--dest", str(tmp_path), *only)
    said("uv", "pip", "install", "--target", str(tmp_path / "installed"), *only)
    for program in ("pip", "uv"):
        [found] = clean(program, "--dry-run")
        assert Path(str(found["name"])) == tmp_path / program
        assert int(str(found["size"])) > 10_000
        clean(program, "--yes")
        assert clean(program, "--dry-run") == []
        left = (path for path in (tmp_path / program).rglob("*") if path.is_file())
        assert sum(path.stat().st_size for path in left) < 1000
