"""`rocwright run` of a wheel stack: a server that is installed into an environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocwright import sandbox
from rocwright.api import project as project_for
from rocwright.catalog.load import the_catalog
from rocwright.catalog.server import Compute
from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock, write_lock
from rocwright.serving.words import words_of
from rocwright.sources.bases.roots import remove_tree
from tests.engines import must_work
from tests.forked import Forking
from tests.serving.conftest import free_port, listing
from tests.serving.wheel_stack import RECIPE, make_root, make_stack

ALPHA = r"""
import helper, http.server, json, os, sys
key = os.environ.get("ALPHA_KEY", "")
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.say(200, {})
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if key and self.headers["Authorization"] != "Bearer " + key:
            return self.say(401, {})
        model = sys.argv[1]
        seen = {"model": json.load(open(model + "/config.json")), "helper": helper.word}
        seen["may write the model"] = os.access(model, os.W_OK)
        seen["in"] = os.getcwd()
        seen["card"] = os.environ["CARD_WANTS"]
        self.say(200, {"text": json.dumps(seen)})
    def say(self, status, told):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(told).encode())
def main():
    http.server.HTTPServer((sys.argv[2], int(sys.argv[3])), Answers).serve_forever()
"""

SERVER: dict[str, object] = {
    "command": ["alpha-says", "{model}", "{host}", "{port}"],
    "models": ["transformers"],
    "port": 8080,
    "health": "/health",
    "key_variable": "ALPHA_KEY",
    "request": {"path": "/ask", "body": "{}", "answer": "text"},
    "compute": [{"name": "cpu", "summary": "the processor"}],
}

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_root(tmp_path_factory.mktemp("root"))


@pytest.fixture(scope="module")
def home(probed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """One home folder for all: the root and the environment are made once."""
    home = Home(tmp_path_factory.mktemp("served") / "home")
    home.path.mkdir()
    shutil.copy(probed, home.probes)
    yield home
    remove_tree(home.path)


@pytest.fixture
def server() -> dict[str, object]:
    return SERVER


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder of transformers, as small as can be."""
    folder = tmp_path / "a model"
    folder.mkdir()
    (folder / "config.json").write_text('{"hidden_size": 1}')
    head = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    (folder / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + b"0000")
    return folder


@pytest.fixture
def run(
    home: Home,
    tmp_path: Path,
    root: Path,
    model: Path,
    server: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    forking: Forking,
) -> Iterator[Run]:
    """`rocwright run tiny` with that model and more words; other verbs as they are."""
    must_work(sandbox.probe(sandbox.ENGINES["bubblewrap"]))
    made = tmp_path / "made"
    made.mkdir()
    make_stack(home, made, root, {"alpha": {**RECIPE["alpha"], "server": server}}, ALPHA)
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(made / "sources" / "catalog"))
    monkeypatch.setenv("ROCWRIGHT_HOME", str(home.path))
    folder = tmp_path / "project"
    folder.mkdir()
    meant = project_for("tiny", "gfx1151", "debian:sid", folder=folder, home=home.path)
    lock = read_lock(made / "sources" / "rocwright.lock")
    write_lock(meant.lock_path, lock.model_copy(update={"request": meant.request}))
    mine = (
        "run",
        "tiny",
        "--gpu",
        "gfx1151",
        "--base",
        "debian:sid",
        "--model",
        str(model),
        "--name",
        "mine",
    )

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return forking.run([*(mine if words[0].startswith("-") else ()), *words], folder, os.environ)

    yield command
    command("stop", "mine")


def test_it_answers_in_its_environment_and_sees_its_model_alone(run: Run, home: Home) -> None:
    port = str(free_port())
    done = run("--detach", "--port", port, "--try")
    assert done.returncode == 0, done.stderr
    told = re.search(r"it answers: '(.*)'", done.stdout)
    assert told is not None, done.stdout
    assert json.loads(told[1]) == {
        "model": {"hidden_size": 1},
        "helper": "helped",
        "may write the model": False,
        "in": "/rocwright-home",
        "card": "1",
    }
    (shown,) = json.loads(run("ps", "--json").stdout)
    assert (shown["component"], shown["running"], shown["on"]) == ("alpha", True, "cpu")
    table = " ".join(run("ps").stdout.split())
    assert f"mine running http://127.0.0.1:{port} a model alpha 1.0 cpu" in table
    again = run("restart", "mine")
    assert again.returncode == 0, again.stderr
    assert run("stop", "mine").returncode == 0
    assert list(home.servers.glob("*")) == []


def ask(port: str, key: str) -> int:
    """The status of its answer to that key."""
    headers = {"Authorization": f"Bearer {key}"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/ask", b"{}", headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_others_need_a_key_that_is_in_no_command_and_no_log(run: Run, home: Home) -> None:
    port = str(free_port())
    done = run("--detach", "--port", port, "--host", "0.0.0.0", "--json")
    assert done.returncode == 0, done.stderr
    key = json.loads(done.stdout)["key"]
    for _ in range(2):
        assert ask(port, "another") == 401
        assert ask(port, key) == 200
        commands = []
        for one in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                commands.append(one.read_bytes())
            except OSError:
                continue  # it has ended since
        assert any(b"alpha-says" in one for one in commands)
        assert not any(key.encode() in one for one in commands)
        assert key not in (home.servers / "mine" / "log").read_text()
        again = run("restart", "mine")
        assert again.returncode == 0
        assert key not in again.stdout + again.stderr + run("restart", "mine", "--json").stdout
        assert str(home.servers / "mine" / "key") in again.stdout


WITHOUT_KEY = {name: one for name, one in SERVER.items() if name != "key_variable"}


@pytest.mark.parametrize("server", [WITHOUT_KEY], ids=["no key"])
def test_one_that_cannot_ask_for_a_key_is_not_shown_to_others(run: Run, home: Home) -> None:
    done = run("--detach", "--host", "0.0.0.0")
    assert done.returncode == 2 and "--no-auth" in done.stderr
    assert list(home.servers.glob("*")) == []


ON_A_CARD = {name: one for name, one in SERVER.items() if name != "compute"}


@pytest.mark.parametrize("server", [SERVER, ON_A_CARD], ids=["processor", "card"])
def test_a_dry_run_prints_the_command_and_writes_nothing(
    run: Run, home: Home, server: dict[str, object], root: Path
) -> None:
    shutil.rmtree(home.environments, ignore_errors=True)
    refused = run("--dry-run")
    assert refused.returncode == 2 and "tiny is not installed here yet" in refused.stderr
    assert not home.environments.exists()
    if "compute" in server:
        started = run("--detach", "--port", str(free_port()))
        assert started.returncode == 0, started.stderr
        assert run("stop", "mine").returncode == 0
        before = listing(home.path)
        done = run("--dry-run", "--host", "0.0.0.0")
        assert done.returncode == 0, done.stderr
        assert listing(home.path) == before
        command = " ".join(done.stdout.replace("\\\n", " ").split())
        assert "alpha-says '/models/a model' 0.0.0.0 8080" in command
        assert "CARD_WANTS=1" in command and str(home.servers / "mine" / "key") in command


@pytest.mark.parametrize("server", [ON_A_CARD], ids=["card"])
def test_one_that_computes_on_a_card_alone_is_refused_without_it(run: Run) -> None:
    if any(Path(name).exists() for name in ("/dev/kfd", "/dev/dri")):
        pytest.skip("a GPU is in this machine")
    done = run("--detach")
    assert done.returncode == 2 and "alpha has no GPU here" in done.stderr


def test_it_is_not_served_in_a_container(run: Run) -> None:
    done = run("--in", "podman")
    assert done.returncode == 2 and "not served in podman" in done.stderr


def test_pickled_weights_are_refused(run: Run, model: Path) -> None:
    (model / "model.safetensors").rename(model / "pytorch_model.bin")
    done = run("--detach")
    assert done.returncode == 2 and "--trust-model" in done.stderr


def test_the_key_of_vllm_is_in_a_variable_that_is_set_inside() -> None:
    server = the_catalog().component("vllm").server
    assert server is not None
    places = {"model": "/models/x", "host": "0.0.0.0", "port": "8000", "key_file": "/run/key"}
    gpu = Compute(name="gpu", summary="the GPU")
    served = ("vllm", "serve", "/models/x", "--host", "0.0.0.0", "--port", "8000")
    assert words_of(server, places, ("gfx1151",), gpu, keyed=False) == served
    keyed = words_of(server, places, ("gfx1151",), gpu, keyed=True)
    assert keyed[3:6] == ("sh", "VLLM_API_KEY", "/run/key") and keyed[6:] == served
