"""`rocwright run` of what others made: an application on its wheels, and an image; a small server stands in
their place."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from samples.project import make_sources, open_project, put_roots

from rocwright import sandbox
from rocwright.api import project as project_for
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import the_catalog
from rocwright.catalog.server import Compute
from rocwright.home import Home
from rocwright.model.steps import FilePin, ImageOrigin, IndexOrigin
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import read_lock, write_lock
from rocwright.serving.service import Service
from rocwright.serving.words import environment_for
from rocwright.sources.bases.roots import remove_tree
from rocwright.store.local import LocalStore
from rocwright.store.model import Output, records
from tests.engines import must_work
from tests.forked import Forking
from tests.making import digest, record_of
from tests.serving.conftest import free_port, listing
from tests.serving.wheel_stack import make_root, wheel

PROGRAM = r"""
import http.server, json, os, sys
from pathlib import Path
host, port, data, rest = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]
try:
    import helper
    helped = helper.word
except ImportError:
    helped = ""
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.say({})
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        with (data / "pictures" / "seen").open("a") as file:
            file.write("x")
        models = Path("/models")
        seen = {"helper": helped, "rest": rest, "pictures": (data / "pictures" / "seen").read_text()}
        seen["models"] = sorted(one.name for one in models.glob("*"))
        seen["may write the program"] = os.access(__file__, os.W_OK)
        seen["set"] = os.environ.get("ALPHA_LISTENS", "")
        seen["of the image"] = os.environ.get("ALPHA_HOME", "")
        self.say({"text": json.dumps(seen)})
    def say(self, told):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(told).encode())
    def log_message(self, *args):
        pass
http.server.HTTPServer((host, port), Answers).serve_forever()
"""

SERVER: dict[str, object] = {
    "command": ["python", "{artifact}/main.py", "{host}", "{port}", "{data}"],
    "models": ["safetensors"],
    "needs_model": False,
    "port": 8080,
    "health": "/health",
    "keeps": ["pictures", "models/checkpoints"],
    "request": {"path": "/ask", "body": "{}", "answer": "text"},
    "compute": [{"name": "cpu", "summary": "the processor", "words": ["--cpu"]}],
}

APPLICATION: dict[str, dict[str, object]] = {
    "wheels": {
        "kind": "wheels",
        "release": [{"version": "1.0", "places": [{"wheels": ["helper==1.0"]}], "source": "x"}],
    },
    "alpha": {
        "kind": "application",
        "run": ["true"],
        "output": [{"name": "archive", "pattern": "alpha.tar.gz"}],
        "server": SERVER,
    },
}

IMAGE: dict[str, dict[str, object]] = {
    "alpha": {
        "kind": "image",
        "release": [{"version": "1.0", "places": [{"image": "docker.io/x/alpha:1"}], "source": "x"}],
        "server": {
            **{name: one for name, one in SERVER.items() if name not in ("models", "needs_model")},
            # found by the PATH that the image sets
            "command": ["alpha.py", "{host}", "{port}", "{data}"],
            "env": {"ALPHA_LISTENS": "{listen}"},
        },
    }
}
OF_THE_IMAGE = {
    "PATH": "/opt/alpha:/usr/bin:/bin",
    "ALPHA_HOME": "/opt/alpha",
    "ALPHA_LISTENS": "0.0.0.0:1",
    "HOME": "/root",
    "-i": "what no environment can have",
}
SERVES_A_MODEL: dict[str, dict[str, object]] = {
    "alpha": IMAGE["alpha"]
    | {
        "server": {
            **{name: one for name, one in SERVER.items() if name != "needs_model"},
            "command": ["alpha.py", "{host}", "{port}", "{data}", "{model}"],
        }
    }
}

BOTH = [
    pytest.param(APPLICATION, id="application"),
    pytest.param(IMAGE, id="image", marks=[pytest.mark.real, pytest.mark.nightly]),
]
"""An image and an application take the same way but for what they are made of."""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_root(tmp_path_factory.mktemp("root"))


@pytest.fixture(scope="module")
def home(probed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    home = Home(tmp_path_factory.mktemp("served") / "home")
    home.path.mkdir()
    shutil.copy(probed, home.probes)
    yield home
    remove_tree(home.path)


@pytest.fixture
def recipes() -> dict[str, dict[str, object]]:
    return APPLICATION


def archive_of(folder: Path) -> Path:
    """The application as its build packs it."""
    (folder / "main.py").write_text(PROGRAM)
    path = folder / "alpha.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        packed.add(folder / "main.py", "alpha/main.py")
    return path


@pytest.fixture(scope="module")
def image(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root file system of an image that has the program."""
    folder = tmp_path_factory.mktemp("image")
    (folder / "alpha.py").write_text(f"#!/usr/bin/python3\n{PROGRAM}")
    (folder / "alpha.py").chmod(0o755)
    plain, path = folder / "image.tar", folder / "image.tar.zst"
    with root.open("rb") as packed, plain.open("wb") as file:
        zstandard.ZstdDecompressor().copy_stream(packed, file)
    with tarfile.open(plain, "a") as archive:
        archive.add(folder / "alpha.py", "opt/alpha/alpha.py")
    with plain.open("rb") as file, path.open("wb") as packed:
        zstandard.ZstdCompressor(level=1).copy_stream(file, packed)
    return path


def make_stack(
    home: Home, folder: Path, root: Path, image: Path, recipes: dict[str, dict[str, object]]
) -> Path:
    """The folder of sources whose lock names what is in the store, fetched and built."""
    sources, store = folder / "sources", LocalStore(home.store)
    make_sources(sources, recipes)
    made = {"alpha": archive_of(folder), "wheels": wheel(folder, "helper", "word = 'helped'\n")}
    origin: IndexOrigin | ImageOrigin = IndexOrigin(project="helper", version="1.0")
    if recipes["alpha"]["kind"] == "image":
        made = {"alpha": image}
        origin = ImageOrigin(reference="docker.io/x/alpha:1", digest=f"sha256:{digest('x')}")
    outputs = {}
    for name, path in made.items():
        sha256, size = store.put_file(path)
        outputs[name] = Output(name=name, filename=path.name, sha256=sha256, size=size)
    lock = read_lock(sources / "rocwright.lock")
    components = list(lock.components)
    for at, one in enumerate(lock.components):
        if recipes[one.name]["kind"] in ("wheels", "image"):
            told = outputs[one.name]
            pin = FilePin(filename=told.filename, sha256=told.sha256, size=told.size, origin=origin)
            env = OF_THE_IMAGE if recipes[one.name]["kind"] == "image" else {}
            components[at] = one.model_copy(update={"files": (pin,), "env": env, "pending": ""})
    write_lock(sources / "rocwright.lock", lock.model_copy(update={"components": tuple(components)}))
    project = open_project(sources, home.path)
    put_roots(project, root)
    for step in make_plan(project.locked, project.catalog).steps:
        if step.name in ("alpha", "wheels/wheels", "image/alpha"):
            store.put_record(record_of(step, outputs[step.component]))
    return sources


@pytest.fixture
def run(
    home: Home,
    tmp_path: Path,
    root: Path,
    image: Path,
    recipes: dict[str, dict[str, object]],
    monkeypatch: pytest.MonkeyPatch,
    forking: Forking,
) -> Iterator[Run]:
    """`rocwright run tiny` with more words; other verbs as they are."""
    must_work(sandbox.probe(sandbox.ENGINES["bubblewrap"]))
    made = tmp_path / "made"
    made.mkdir()
    sources = make_stack(home, made, root, image, recipes)
    monkeypatch.setenv("ROCWRIGHT_CATALOG", str(sources / "catalog"))
    monkeypatch.setenv("ROCWRIGHT_HOME", str(home.path))
    folder = tmp_path / "project"
    folder.mkdir()
    meant = project_for("tiny", "gfx1151", "debian:sid", folder=folder, home=home.path)
    lock = read_lock(sources / "rocwright.lock")
    write_lock(meant.lock_path, lock.model_copy(update={"request": meant.request}))
    mine = ("run", "tiny", "--gpu", "gfx1151", "--base", "debian:sid", "--name", "mine")

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return forking.run([*(mine if words[0].startswith("-") else ()), *words], folder, os.environ)

    yield command
    command("stop", "mine")
    remove_tree(home.data)


def asked(run: Run, *words: str) -> tuple[dict[str, object], str]:
    """What it says that it sees, and the port that it listens on."""
    port = str(free_port())
    done = run("--detach", "--port", port, "--try", *words)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^  keeps +/.*/data/tiny$", done.stdout, re.MULTILINE), done.stdout
    told = re.search(r"it answers: '(.*)'", done.stdout)
    assert told is not None, done.stdout
    seen: dict[str, object] = json.loads(told[1])
    return seen, port


def test_an_application_runs_on_its_wheels_and_keeps_what_is_its_users(run: Run, home: Home) -> None:
    first, _ = asked(run)
    assert first == {
        "helper": "helped",
        "rest": ["--cpu"],
        "pictures": "x",
        "models": [],
        "may write the program": False,
        "set": "",
        "of the image": "",
    }
    assert run("restart", "mine").returncode == 0
    assert run("stop", "mine").returncode == 0
    assert list(home.servers.glob("*")) == []
    for words in (("--stack", "tiny"), ("--keep", "0d")):
        done = run("clean", "programs", "environments", *words, "--yes")
        assert done.returncode == 0, done.stderr
    assert not list(home.programs.glob("*.json"))
    again, _ = asked(run)
    assert again["pictures"] == "xx"
    assert (home.data / "tiny" / "models" / "checkpoints").is_dir()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    head = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    path = tmp_path / "a model.safetensors"
    path.write_bytes(len(head).to_bytes(8, "little") + head + b"0000")
    return path


def test_an_application_sees_the_model_that_is_named(run: Run, model: Path) -> None:
    seen, _ = asked(run, "--model", str(model))
    assert seen["models"] == ["a model.safetensors"]


def test_an_application_gets_the_packages_that_are_required(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As what custom nodes of ComfyUI import; one that is there already changes nothing."""
    assert asked(run, "--require", "helper>=1")[0]["helper"] == "helped"
    run("stop", "mine")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    refused = run("--detach", "--require", "for-a-node==1")
    assert refused.returncode != 0
    assert "lock: Python packages for for-a-node==1" in refused.stderr


@pytest.mark.parametrize("recipes", [IMAGE], ids=["image"])
def test_what_has_no_environment_gets_no_packages(run: Run) -> None:
    refused = run("--detach", "--require", "helper")
    assert refused.returncode == 2 and "--require has no effect on tiny" in refused.stderr


@pytest.mark.parametrize("recipes", BOTH)
def test_without_a_key_it_is_shown_to_others_only_where_that_is_said(run: Run, home: Home) -> None:
    for words in (["--detach"], ["--dry-run"]):
        refused = run(*words, "--host", "0.0.0.0")
        assert refused.returncode == 2 and "leave --host out, or allow it with --no-auth" in refused.stderr
        assert "others could use " in refused.stderr and "dry-run" not in refused.stderr
    assert list(home.servers.glob("*")) == []
    asked(run, "--host", "0.0.0.0", "--no-auth")


@pytest.mark.parametrize("recipes", [IMAGE], ids=["image"])
def test_an_image_runs_on_its_own_root_and_keeps_what_is_its_users(run: Run, home: Home) -> None:
    for pictures in ("x", "xx"):
        seen, port = asked(run)
        assert seen == {
            "helper": "",
            "rest": ["--cpu"],
            "pictures": pictures,
            "models": [],
            "may write the program": False,
            "set": f"127.0.0.1:{port}",
            "of the image": "/opt/alpha",
        }
        assert run("stop", "mine").returncode == 0
    assert list(home.servers.glob("*")) == []
    refused = run("--model", "x")
    assert refused.returncode == 2 and "loads what its clients name" in refused.stderr


@pytest.mark.parametrize("recipes", [SERVES_A_MODEL], ids=["image"])
def test_an_image_sees_the_model_that_is_named(run: Run, model: Path) -> None:
    refused = run("--detach")
    assert refused.returncode == 2 and "no model named" in refused.stderr
    seen, _ = asked(run, "--model", str(model))
    assert seen["models"] == [model.name]
    assert seen["rest"] == [f"/models/{model.name}", "--cpu"]


@pytest.mark.parametrize("recipes", BOTH)
def test_a_dry_run_builds_nothing(run: Run, home: Home) -> None:
    asked(run)
    run("stop", "mine")
    for made in (home.programs, home.data):
        remove_tree(made)
    before = listing(home.path)
    done = run("--dry-run")
    assert done.returncode == 0 and "127.0.0.1" in done.stdout, done.stderr
    assert listing(home.path) == before
    store = LocalStore(home.store)
    for one in records(store):
        if one.step in ("alpha", "image/alpha"):
            store.local.remove("record", one.key)
    done = run("--dry-run")
    assert done.returncode == 2
    assert "--dry-run builds and fetches nothing" in done.stderr
    assert "next   rocwright build tiny --base debian:sid --gpu gfx1151" in done.stderr
    assert listing(home.path).keys() <= before.keys()


@pytest.mark.parametrize("recipes", BOTH)
def test_it_is_not_served_in_a_container(run: Run) -> None:
    done = run("--in", "podman")
    assert done.returncode == 2 and "is not served in podman" in done.stderr


def words(component: str, host: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command and the variables of a recipe that rocwright carries."""
    server = the_catalog().component(component).server
    assert server is not None
    service = Service(
        stack=component,
        component=component,
        version="1",
        gpu=("gfx1151",),
        base="debian:trixie",
        server=server,
        on=Compute(name="gpu", summary="the GPU"),
    )
    places = service.places(host, 8000, "/artifact") | {"model": "/models/m"}
    return service.words(places, keyed=False), service.variables(places)


def test_ollama_listens_where_it_is_told_and_keeps_its_models() -> None:
    command, env = words("ollama", "127.0.0.1")
    assert command == ("ollama", "serve")
    assert env == {"OLLAMA_HOST": "127.0.0.1:8000", "OLLAMA_MODELS": "/data/models"}
    assert words("ollama", "::1")[1]["OLLAMA_HOST"] == "[::1]:8000"


def test_images_of_others_are_given_their_model_and_attention_that_the_card_has() -> None:
    command, env = words("sglang-image", "127.0.0.1")
    told = " ".join(command)
    assert told.startswith("python3 -m sglang.launch_server --attention-backend triton --model-path")
    assert "/models/m --host 127.0.0.1 --port 8000" in told and env["HF_HUB_OFFLINE"] == "1"
    command, _ = words("vllm-image", "127.0.0.1")
    assert command == ("vllm", "serve", "/models/m", "--host", "127.0.0.1", "--port", "8000")


def test_the_card_s_variables_go_before_those_of_an_image() -> None:
    catalog = the_catalog()
    lock = read_lock(next((DATA / "locks" / "sglang").iterdir()))
    image = {
        "SGLANG_USE_AITER": "1",
        "LD_LIBRARY_PATH": "/opt/rocm/lib",
        "HOME": "/root",
        "A\0B": "",
        "C": "\0",
    }
    locked = lock.model_copy(update={"components": (lock.components[0].model_copy(update={"env": image}),)})
    gpu = Compute(name="gpu", summary="the GPU")
    env = environment_for(catalog.component("sglang-image"), catalog, locked, gpu)
    assert env["LD_LIBRARY_PATH"] == "/opt/rocm/lib"
    assert env["SGLANG_USE_AITER"] == "0"
    # what its programs compile is kept, and nobody's home is theirs
    assert env["HOME"] == env["XDG_CACHE_HOME"] == "/cache"
    assert not {"C", "-"} & set(env)


def test_comfyui_writes_to_the_folder_that_is_its_users_alone() -> None:
    command, _ = words("comfyui", "127.0.0.1")
    told = " ".join(command)
    assert told.startswith("python /artifact/main.py --listen 127.0.0.1 --port 8000 ")
    assert "--base-directory /data --database-url sqlite:////data/comfyui.db" in told
