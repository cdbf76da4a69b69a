"""`rocwright run` from a stack to an answer, with a product that is built in moments."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from samples.making import make_tiny_root
from samples.project import TAR, make_sources, open_project, put_roots

from rocbase.errors import CheckError
from rocwright import sandbox
from rocwright.api import project as project_for
from rocwright.catalog.load import builtin_catalog
from rocwright.diagnosis.facts import host_facts
from rocwright.diagnosis.machine.tree import Tree
from rocwright.doctor.this_machine import here
from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock, write_lock
from rocwright.serving import api, check
from tests.diagnosis.machine.machines import STRIX_HALO, machine
from tests.engines import must_work
from tests.forked import Forking
from tests.serving.conftest import free_port

SERVE = r"""
import http.server, json, sys
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self._say({"model": open(sys.argv[2], "rb").read(4).decode()})
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self._say({"text": "an answer"})
    def _say(self, told):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(told).encode())
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answers).serve_forever()
"""

LAID = f"mkdir -p alpha-1/bin && cat > alpha-1/bin/serve.py <<'END'\n{SERVE}END"
PACKED = f"{TAR} $OUT/alpha-1.0.tar.gz alpha-1"

RECIPE: dict[str, dict[str, object]] = {
    "alpha": {
        "kind": "archive",
        "run": [LAID, PACKED],
        "output": [{"name": "archive", "pattern": "alpha-*.tar.gz"}],
        "image": {"prefix": "/opt/alpha"},
        "server": {
            "command": ["python3", "{artifact}/bin/serve.py", "{port}", "{model}"],
            "models": ["gguf"],
            "port": 8080,
            "health": "/health",
            "request": {"path": "/ask", "body": "{}", "answer": "text"},
            "compute": [{"name": "cpu", "summary": "the processor"}],
        },
    }
}

WORDS = (
    "run",
    "tiny",
    "--gpu",
    "gfx1151",
    "--base",
    "debian:sid",
    "--model",
    "tiny",
    "--name",
    "mine",
    "-d",
    "-y",
)

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    make_tiny_root(folder / "root.tar.zst", folder, python=True, whole=True)
    return folder / "root.tar.zst"


@pytest.fixture
def recipe() -> dict[str, dict[str, object]]:
    return RECIPE


@pytest.fixture
def run(
    home: Home,
    tmp_path: Path,
    root: Path,
    probed: Path,
    recipe: dict[str, dict[str, object]],
    monkeypatch: pytest.MonkeyPatch,
    forking: Forking,
) -> Iterator[Run]:
    """The command, with a stack of its own whose lock and root are there."""
    must_work(sandbox.probe(sandbox.ENGINES["bubblewrap"]))
    home.path.mkdir(exist_ok=True)
    shutil.copy(probed, home.probes)
    make_sources(tmp_path / "sources", recipe)
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(tmp_path / "sources" / "catalog"))
    monkeypatch.setenv("ROCWRIGHT_HOME", str(home.path))
    put_roots(open_project(tmp_path / "sources", home.path), root)
    folder = tmp_path / "project"
    folder.mkdir()

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return forking.run([*words], folder, os.environ)

    meant = project_for("tiny", "gfx1151", "debian:sid", folder=folder, home=home.path)
    lock = read_lock(tmp_path / "sources" / "rocwright.lock")
    write_lock(meant.lock_path, lock.model_copy(update={"request": meant.request}))
    yield command
    command("stop", "mine")


def test_the_second_start_says_and_serves_the_same(run: Run, home: Home) -> None:
    port = free_port()
    words = (*WORDS, "--port", str(port), "--try")
    told = []
    for _ in range(2):
        done = run(*words)
        assert done.returncode == 0, done.stderr
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=30) as reply:
            assert json.load(reply) == {"model": "GGUF"}
        assert "it answers: 'an answer'" in done.stdout
        told.append((done.stdout, done.stderr))
        assert run("stop", "mine").returncode == 0
    (_, first), (_, second) = told
    assert "is not built here yet" in first and "unpacking" in first
    # what is said of the server is said each time, and nothing else
    assert second.splitlines() == [
        "stack: tiny, for gfx1151, which is not in this machine",
        "on: the processor",
        f"starting mine on http://127.0.0.1:{port}",
    ]


def test_a_catalog_that_changed_is_read_again(run: Run, tmp_path: Path) -> None:
    words = (*WORDS, "--port", str(free_port()))
    assert run(*words).returncode == 0
    run("stop", "mine")
    recipe = tmp_path / "sources" / "catalog" / "components" / "alpha.toml"
    recipe.write_text(recipe.read_text().replace('"the processor"', '"another word"'))
    assert "on: another word" in run(*words).stderr
    run("stop", "mine")


WITHOUT_IMAGE = {name: one for name, one in RECIPE["alpha"].items() if name != "image"}


@pytest.mark.parametrize("recipe", [{"alpha": WITHOUT_IMAGE}], ids=["no image"])
def test_a_recipe_without_a_root_to_run_in_is_refused_in_words(run: Run) -> None:
    done = run(*WORDS)
    assert done.returncode == 2 and "no root file system to run in" in done.stderr


def with_fit(says: str) -> dict[str, dict[str, object]]:
    """The product with a program beside it that says what a model takes, and what it was asked."""
    script = f"#!/bin/sh\\ntest -f /models/*.gguf && test ! -w / && echo '{says}'\\n"
    made = f'printf "{script}" > alpha-1/llama-fit-params && chmod 755 alpha-1/llama-fit-params'
    return {"alpha": {**RECIPE["alpha"], "run": [LAID, made, PACKED]}}


@pytest.mark.parametrize("recipe", [with_fit("Host 900000000 10 10 ")], ids=["too much"])
def test_what_the_servers_own_program_says_of_the_model_counts(run: Run, home: Home) -> None:
    done = run(*WORDS)
    assert "does not fit" in done.stderr and "says llama-fit-params" in done.stderr
    assert done.returncode not in (0, 70)
    assert list(home.servers.glob("*")) == []


@pytest.mark.parametrize("recipe", [with_fit("what is this"), with_fit("Host 1 1 1 ")], ids=["none", "fits"])
def test_where_it_says_nothing_or_that_there_is_room_the_server_starts(run: Run) -> None:
    done = run(*WORDS, "--port", str(free_port()))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("place", ["podman", "docker"])
def test_a_container_engine_that_does_not_work_is_told_before_anything_is_built(
    run: Run, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    engine = tmp_path / place
    engine.write_text("#!/bin/sh\nexit 1\n")
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    done = run(*WORDS, "--in", place)
    assert f"{place} does not answer" in done.stderr and "leave --in out" in done.stderr
    assert "building" not in done.stderr and list(home.servers.glob("*")) == []


def test_who_asks_for_the_processor_needs_no_right_to_the_card(
    run: Run, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "project")
    # a user in no group that may open the card
    with Tree(machine(tmp_path / "machine", STRIX_HALO)) as tree:
        found = here(tree, builtin_catalog(), host_facts(), home)
    monkeypatch.setattr(check, "machine_here", lambda catalog, home: found)
    monkeypatch.setattr(api, "gpus_here", lambda catalog: ("gfx1151",))

    def start(on: str) -> api.StartedServer:
        return api.run_server(
            "tiny", model="tiny", gpu="gfx1151", base="debian:sid", name="mine", on=on, port=free_port()
        )

    with pytest.raises(CheckError, match="gfx1151 of this machine"):
        start("")
    assert start("cpu").server.on == "cpu"


@pytest.mark.parametrize("words", [(), ("--jupyter",)])
def test_a_name_that_no_server_can_have_is_told_before_anything_is_built(
    run: Run, home: Home, words: tuple[str, ...]
) -> None:
    (home.path / "precious").mkdir()
    options = words or ("--model", "tiny")
    done = run("run", "tiny", "--gpu", "gfx1151", "--base", "debian:sid", "--name", "../precious", *options)
    assert done.returncode == 2 and "'../precious' is not a name of a server" in done.stderr
    assert "building" not in done.stderr and (home.path / "precious").is_dir()


def test_stop_and_logs_of_a_path_touch_nothing(run: Run, home: Home) -> None:
    (home.path / "precious").mkdir()
    for name in ("../precious", str(home.path / "precious")):
        assert "is not a name of a server" in run("stop", name).stderr
        assert "is not a name of a server" in run("restart", name).stderr
        assert run("logs", name).returncode == 2
    assert (home.path / "precious").is_dir()
