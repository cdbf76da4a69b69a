"""whisper-vulkan and stable-diffusion-vulkan, built and served for real, on models that rocwright makes."""

from __future__ import annotations

import base64
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from tests.engines import must_work
from tests.real.stacks import build_and_verify, rocwright
from tests.serving.conftest import free_port
from tools.docs_outputs import ROOT, served, unvarying

import rocwright as package
from rocwright import sandbox
from rocwright.home import Home
from rocwright.sandbox import lasting

pytestmark = [pytest.mark.real, pytest.mark.nightly]

CHECK = Path(package.__file__).parent / "catalog" / "data" / "checks" / "ggml_servers" / "check.py"
SPEECH, PICTURES = "whisper-vulkan", "stable-diffusion-vulkan"


@pytest.fixture(scope="module")
def check() -> Iterator[ModuleType]:
    """What the stacks' own check knows of pictures."""
    spec = importlib.util.spec_from_file_location("media_check", CHECK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["media_check"] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["media_check"]


@pytest.fixture(scope="module", params=[SPEECH, PICTURES])
def stack(request: pytest.FixtureRequest) -> str:
    """One after another, so that each is built once, by the first test."""
    return str(request.param)


@contextmanager
def running(home: Home, folder: Path, stack: str, *words: str) -> Iterator[str]:
    """What `run` prints of a server with its tiny model; nothing of it is left at the end."""
    asked = ("--gpu", "gfx1151", "--model", "tiny", "--detach", "--yes", "--port", str(free_port()))
    said = rocwright(home, folder, "run", stack, *asked, *words)
    mark = json.loads((home.servers / stack / "server.json").read_text())["mark"]
    try:
        yield said
    finally:
        rocwright(home, folder, "stop", stack)
    assert not lasting.processes(mark)
    assert list(home.servers.iterdir()) == []


def answer(said: str) -> bytes:
    """What the line for a shell that `run` prints answers: a text, or a picture."""
    (line,) = [one.strip() for one in said.splitlines() if one.startswith("  curl ")]
    words = ["sh", "-c", line.replace("curl ", "curl --silent --show-error --fail ", 1)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=600)
    reply = json.loads(done.stdout)
    return reply["text"].encode() if "text" in reply else base64.b64decode(reply["images"][0])


def alike(check: ModuleType, one: bytes, other: bytes) -> str:
    """Raises where two answers are further apart than the backends may be."""
    if one.startswith(b"\x89PNG"):
        return str(check.compare_pictures(check.read_png(one), check.read_png(other)))
    assert one == other
    return one.decode()


def test_it_is_built_and_runs_on_a_vulkan_device(home: Home, tmp_path: Path, stack: str) -> None:
    built = build_and_verify(home, tmp_path / "project", stack, "gfx1151")
    assert not [one for one in built["findings"] if not one["ok"]]
    assert {"answers", "same-again", "as-the-cpu"} <= {one["name"] for one in built["findings"]}
    assert all(one["device"].startswith("llvmpipe") for one in built["findings"] if one["check"] == "answers")


def test_the_printed_line_is_answered_alike_by_the_device_and_the_processor(
    home: Home, tmp_path: Path, stack: str, check: ModuleType
) -> None:
    told = {}
    for on in ("cpu", "software"):
        with running(home, tmp_path, stack, "--on", on) as said:
            told[on] = answer(said)
            if on == "cpu":  # the other is slow; the stack's check asks it twice
                assert answer(said) == told[on], "one seed, one answer"
    assert alike(check, told["software"], told["cpu"])
    if stack == SPEECH:
        assert told["cpu"].decode().strip() == "This model is tiny and random."


def test_try_tells_what_came(home: Home, tmp_path: Path, stack: str) -> None:
    with running(home, tmp_path, stack, "--on", "cpu", "--try") as said:
        wanted = "This model is tiny and random." if stack == SPEECH else "a picture of 128x128, "
        assert wanted in said
        shown = served(ROOT / "docs" / "run.md")[f"run {stack} --model tiny --detach --try"]
        assert unvarying(said) == shown, "docs/run.md shows it"


def test_it_is_shown_restarted_and_ended(home: Home, tmp_path: Path, stack: str) -> None:
    with running(home, tmp_path, stack, "--on", "cpu"):
        (first,) = json.loads(rocwright(home, tmp_path, "ps", "--json"))
        assert first["running"] and first["host"] == "127.0.0.1"
        assert "tiny" in rocwright(home, tmp_path, "logs", stack)
        said = rocwright(home, tmp_path, "restart", stack)
        (second,) = json.loads(rocwright(home, tmp_path, "ps", "--json"))
        assert second["pid"] != first["pid"] and second["port"] == first["port"]
        assert answer(said)


def test_others_are_not_let_in_without_a_key_that_it_cannot_ask_for(
    home: Home, tmp_path: Path, stack: str
) -> None:
    words = ("run", stack, "--gpu", "gfx1151", "--model", "tiny", "--detach", "--host", "0.0.0.0")
    done = subprocess.run(
        [sys.executable, "-m", "rocwright", *words, "--port", str(free_port())],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "ROCWRIGHT_HOME": str(home.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "without a key" in done.stderr and "--no-auth" in done.stderr
    assert json.loads(rocwright(home, tmp_path, "ps", "--json")) == []


def test_podman_answers_as_the_host_does(home: Home, tmp_path: Path, stack: str, check: ModuleType) -> None:
    must_work(sandbox.probe(sandbox.ENGINES["podman"]))
    with running(home, tmp_path, stack, "--on", "cpu") as said:
        here = answer(said)
    with running(home, tmp_path, stack, "--on", "cpu", "--in", "podman") as said:
        assert alike(check, answer(said), here)
