"""From the catalog's word on a server to its command line; what cannot be is refused."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from rocwheel.errors import InputError
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import the_catalog
from rocwright.catalog.server import Server
from rocwright.serving import choose
from rocwright.serving.words import compute_named, words_of

PLACES = {
    "artifact": "/a",
    "model": "/m/x.gguf",
    "host": "127.0.0.1",
    "port": "80",
    "key_file": "/k",
    "page": "/p",
}
SERVER = Server(
    command=("{artifact}/serve", "{model}", "--port", "{port}"),
    models=("gguf",),
    port=80,
    health="/health",
    key=("--key", "{key_file}"),
    flags=(
        {"words": ("--flash",), "targets": ("gfx1151",), "why": "it is faster", "source": "measured"},
        {"words": ("--all",), "why": "everywhere", "source": "measured"},
    ),
    compute=({"name": "cpu", "summary": "the processor", "words": ("--no-gpu",)},),
)
SERVED = [name for name in the_catalog().components if the_catalog().component(name).server is not None]


def test_a_card_gets_its_own_flags_and_another_does_not() -> None:
    gpu = compute_named(SERVER, "gpu")
    mine = words_of(SERVER, PLACES, ("gfx1151",), gpu, keyed=False)
    assert mine == ("/a/serve", "/m/x.gguf", "--port", "80", "--flash", "--all")
    assert "--flash" not in words_of(SERVER, PLACES, ("gfx803",), gpu, keyed=False)


def test_without_the_card_its_flags_are_left_out() -> None:
    words = words_of(SERVER, PLACES, ("gfx1151",), compute_named(SERVER, "cpu"), keyed=True)
    assert words[4:] == ("--no-gpu", "--key", "/k")


def test_what_it_cannot_compute_on_is_refused() -> None:
    with pytest.raises(InputError, match="npu"):
        compute_named(SERVER, "npu")


@pytest.mark.parametrize(
    "wrong",
    [
        {"command": ["{artifact}/serve", "{file}"]},
        {"command": ["{artifact}/serve"]},
        {"key": ["--key", "secret"]},
        {"health": "health"},
        {"port": 0},
        {"page": "pages/chat"},
        {"command": ["{artifact}/serve", "{model}", "--path", "{page}"]},
        {"request": {"path": "/", "body": "{not json", "answer": "x"}},
        {"compute": [{"name": "gpu", "summary": "twice"}]},
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Server.model_validate(SERVER.model_dump() | wrong)


@pytest.mark.parametrize("name", SERVED)
def test_every_shipped_server_can_be_started_without_a_card_and_asked_something(name: str) -> None:
    server = the_catalog().component(name).server
    assert server is not None
    assert server.compute
    words = words_of(server, PLACES, ("gfx1151",), server.compute[0], keyed=bool(server.key))
    assert words[0].startswith("/a/")
    assert "127.0.0.1" in words
    for one in server.flags:
        assert {*one.targets} <= {*the_catalog().targets}, one.words
    assert server.request is None or isinstance(json.loads(server.request.body), dict)


def test_a_card_of_this_machine_is_needed_only_where_it_is_asked_for() -> None:
    component = the_catalog().component("llama.cpp")
    assert choose.compute_for(component, "", "").name == "cpu"
    assert choose.compute_for(component, "gfx1151", "software").env
    with pytest.raises(InputError, match="no GPU here"):
        choose.compute_for(component, "", "gpu")


@pytest.mark.parametrize("name", SERVED)
def test_the_page_that_a_server_shows_is_in_the_catalog(name: str) -> None:
    server = the_catalog().component(name).server
    assert server is not None
    assert not server.page or (DATA / server.page / "index.html").is_file()
