"""llama-vulkan, built and run for real on a Vulkan device that is a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import urllib.error
from pathlib import Path
from typing import Any

import pytest
from tests.engines import must_work
from tests.real.chatting import chat
from tests.real.served import containers, served
from tests.real.stacks import build_and_verify, rocwright
from tests.serving.conftest import free_port
from tools.docs_outputs import ROOT, unvarying
from tools.docs_outputs import served as shown_of_servers

from rocwright import sandbox
from rocwright.catalog.load import the_catalog
from rocwright.home import Home

pytestmark = [pytest.mark.real, pytest.mark.nightly]


@pytest.fixture(scope="module")
def serving(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to run servers from; what they run is built, once for this file."""
    folder = tmp_path_factory.mktemp("serving")
    rocwright(home, folder, "build", "llama-vulkan", "--gpu", "gfx1151")
    return folder


@pytest.fixture(params=["podman", "docker"])
def container_engine(request: pytest.FixtureRequest) -> str:
    must_work(sandbox.probe(sandbox.ENGINES[request.param]))
    return str(request.param)


def test_llama_vulkan_is_built_and_runs_on_a_vulkan_device(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "llama"
    built = build_and_verify(home, folder, "llama-vulkan", "gfx1151")
    failed = [one for one in built["findings"] if not one["ok"]]
    assert not failed, failed
    names = {one["name"] for one in built["findings"]}
    assert {"same-greedy-tokens", "logits-close", "server-chat"} <= names

    (image,) = [one for one in built["artifacts"] if one["filename"].endswith(".oci.tar")]
    with tarfile.open(image["path"]) as layout:
        members = set(layout.getnames())
    assert {"oci-layout", "index.json"} <= members

    measured = json.loads(rocwright(home, folder, "bench", "--runs", "2", "--json"))
    assert {one["name"] for one in measured} == {
        "prompt",
        "generation",
        "server start",
        "server, 1 user",
        "server, 8 users",
    }
    # there is no GPU where this runs: the device that is named is a program
    assert all(one["device"].startswith("llvmpipe") and len(one["values"]) == 2 for one in measured)
    shown = rocwright(home, folder, "bench", "--compare", "llama-vulkan")
    assert "in software" in shown

    again = json.loads(rocwright(home, folder, "build", "--json"))
    assert again["run"]["steps"] == []
    words = ("llama-vulkan", "--gpu", "gfx1151")
    rocwright(home, folder, "lock", *words)
    other = json.loads(rocwright(home, folder, "plan", *words, "--json"))
    assert {one["state"] for one in other if one["kind"] == "run"} == {"in store"}


SEED = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, "seed": 1, "temperature": 0}


def test_the_software_device_answers_as_the_processor_does(home: Home, serving: Path) -> None:
    """One seed, random weights: a wrong product anywhere gives another text."""
    told = {}
    for on in ("cpu", "software"):
        with served(home, serving, "--on", on) as server:
            told[on] = server.ask(SEED)
            assert server.state["on"] == on
    assert told["cpu"]["usage"]["completion_tokens"] == 8
    assert told["cpu"]["choices"][0]["message"]["content"]
    assert _text(told["software"]) == _text(told["cpu"])


def test_the_page_shows_what_is_printed(home: Home, serving: Path) -> None:
    words = ("run", "llama-vulkan", "--model", "tiny", "--detach")
    said = rocwright(home, serving, *words, "--gpu", "gfx1151", "--on", "cpu", "--port", str(free_port()))
    rocwright(home, serving, "stop", "llama-vulkan")
    assert unvarying(said) == shown_of_servers(ROOT / "docs" / "run.md")[" ".join(words)]


def test_a_container_runs_the_image_that_was_built_and_it_answers_as_the_host(
    home: Home, serving: Path, container_engine: str
) -> None:
    with served(home, serving) as server:
        on_the_host = server.ask(SEED)
    with served(home, serving, "--in", container_engine) as server:
        assert containers(server, container_engine)
        contained = server.ask(SEED)
    assert not containers(server, container_engine)
    # the version and commit that it was built from, in its own words: no other image of that name
    assert contained["system_fingerprint"] == on_the_host["system_fingerprint"]
    assert f"b{server.state['version']}-" in contained["system_fingerprint"]
    assert _text(contained) == _text(on_the_host)


@pytest.mark.parametrize("place", ["host", "podman", "docker"])
def test_who_comes_from_elsewhere_needs_the_key(home: Home, serving: Path, place: str) -> None:
    if place != "host":
        must_work(sandbox.probe(sandbox.ENGINES[place]))
    with served(home, serving, "--host", "0.0.0.0", "--in", place) as server:
        assert server.state["key"] not in " ".join(server.state["command"])
        assert server.ask(SEED)["choices"]
        server.key = "wrong"
        with pytest.raises(urllib.error.HTTPError) as refused:
            server.ask(SEED)
        assert refused.value.code == 401


def test_the_chat_page_answers_in_a_browser(home: Home, serving: Path) -> None:
    with served(home, serving, "--host", "0.0.0.0") as server, chat(f"{server.state['url']}/") as page:
        assert server.state["addresses"]["chat page"] == page.page.url
        page.page.get_by_label("The key of this server").fill(server.key)
        page.page.get_by_role("button", name="Use it").click()
        assert page.answer("Hello")
        assert all("401" in one for one in page.wrong), "the page itself is shown without the key"


def test_a_page_from_elsewhere_may_not_read_the_answer(home: Home, serving: Path) -> None:
    with served(home, serving) as server:
        theirs = server.headers("http://elsewhere.example")
        ours = server.headers("http://localhost:3000")
    assert "Access-Control-Allow-Origin" not in theirs
    assert ours["Access-Control-Allow-Origin"] == "http://localhost:3000"


def test_flags_of_a_card_are_known_to_the_program(home: Home, serving: Path) -> None:
    """Without the card nothing else would tell: a server that knows a flag ends for another reason."""
    component = the_catalog().component("llama.cpp")
    assert component.server is not None
    for flags in component.server.flags:
        with served(home, serving) as server:
            argv = [*server.state["command"], *flags.words, "--model", "/models/none.gguf"]
            argv += ["--port", str(free_port())]
            done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
        assert "invalid argument" not in done.stdout + done.stderr
        assert "/models/none.gguf" in done.stdout + done.stderr


def test_after_a_killed_rocwright_ps_and_stop_are_right(home: Home, serving: Path) -> None:
    words = ("run", "llama-vulkan", "--gpu", "gfx1151", "--model", "tiny", "--name", "killed", "--detach")
    with subprocess.Popen(
        [sys.executable, "-m", "rocwright", *words, "--port", str(free_port())],
        cwd=serving,
        env=os.environ | {"ROCWRIGHT_HOME": str(home.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as starting:
        assert starting.stdout is not None
        assert any("starting killed" in line for line in starting.stdout)
        starting.kill()
    (state,) = json.loads(rocwright(home, serving, "ps", "--json"))
    assert (state["name"], state["running"]) == ("killed", True)
    assert json.loads(rocwright(home, serving, "stop", "killed", "--json")) == [
        {"name": "killed", "ran": True}
    ]
    assert json.loads(rocwright(home, serving, "ps", "--json")) == []
    assert list(home.servers.iterdir()) == []


def _text(reply: dict[str, Any]) -> str:
    return str(reply["choices"][0]["message"]["content"])


def test_options_and_variables_of_the_user_reach_the_program(home: Home, serving: Path) -> None:
    words = ("--env", "LLAMA_ARG_ALIAS=friend", "--", "--ctx-size", "512")
    with served(home, serving, *words) as server:
        props = server.get("/props")
    assert props["default_generation_settings"]["n_ctx"] == 512
    assert props["model_alias"] == "friend"
