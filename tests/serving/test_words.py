"""From the catalog's word on a server to its command line; what cannot be is refused."""

from __future__ import annotations

import functools
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.catalog.environment import environment
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import the_catalog
from rocwright.catalog.server import FirstRequest, Server
from rocwright.execution.progress import PlainProgress
from rocwright.home import Home
from rocwright.plan.resolve.files import read_lock
from rocwright.serving import choose
from rocwright.serving.model_file import model_of
from rocwright.serving.models.tiny import GENERATED
from rocwright.serving.verbs.servers import curl
from rocwright.serving.words import check_own, compute_named, environment_for, words_of
from rocwright.verify.small_models import MAKERS
from tests.serving.conftest import STATE

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
UNPACKED = [name for name in SERVED if the_catalog().component(name).kind == "archive"]


def test_a_card_gets_its_own_flags_and_another_does_not() -> None:
    gpu = compute_named(SERVER, "gpu")
    mine = words_of(SERVER, PLACES, ("gfx1151",), gpu, keyed=False)
    assert mine == ("/a/serve", "/m/x.gguf", "--port", "80", "--flash", "--all")
    assert "--flash" not in words_of(SERVER, PLACES, ("gfx803",), gpu, keyed=False)


@pytest.mark.parametrize("text", ["secret", "secret\n"])
def test_a_server_that_takes_its_key_from_a_variable_finds_it_there(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_text(text)
    server = SERVER.model_copy(
        update={"key_variable": "KEY", "command": ("sh", "-c", "echo $KEY $#"), "models": ()}
    )
    words = words_of(
        server, PLACES | {"key_file": str(tmp_path / "key")}, (), compute_named(SERVER, "cpu"), keyed=True
    )
    assert subprocess.run(words, capture_output=True, check=True, text=True).stdout == "secret 2\n"
    missing = subprocess.run([*words[:5], str(tmp_path / "none"), "true"], capture_output=True, text=True)
    assert (missing.returncode != 0, missing.stderr[:4]) == (True, "sh: ")


def test_without_the_card_its_flags_are_left_out() -> None:
    words = words_of(SERVER, PLACES, ("gfx1151",), compute_named(SERVER, "cpu"), keyed=True)
    assert words[4:] == ("--no-gpu", "--key", "/k")


PARTED = Server(
    command=("{artifact}/serve", "--port", "{port}"),
    models=("gguf",),
    alone=("--model", "{model}"),
    parted=("--part", "{model}"),
    companion=(
        {"name": "llm", "summary": "reads", "words": ("--llm", "{file}")},
        {"name": "vae", "summary": "paints", "words": ("--vae={file}",)},
    ),
    port=80,
    health="/health",
    compute=({"name": "cpu", "summary": "the processor", "words": ("--no-gpu",)},),
)


def test_a_model_of_several_files_is_named_in_other_words() -> None:
    cpu = compute_named(PARTED, "cpu")
    whole = words_of(PARTED, PLACES, ("gfx1151",), cpu, keyed=False)
    assert whole == ("/a/serve", "--port", "80", "--model", "/m/x.gguf", "--no-gpu")
    parts = words_of(
        PARTED, PLACES, ("gfx1151",), cpu, keyed=False, companion_paths={"vae": "/beside/{x}.gguf"}
    )
    assert parts == ("/a/serve", "--port", "80", "--part", "/m/x.gguf", "--no-gpu", "--vae=/beside/{x}.gguf")


def test_a_file_that_a_server_does_not_take_is_refused(tmp_path: Path) -> None:
    model_file = functools.partial(
        model_of, "tiny", home=Home(tmp_path), trust=False, say=print, progress=PlainProgress()
    )
    with pytest.raises(InputError, match="lora") as caught:
        model_file(PARTED, companions={"lora": "x.gguf"})
    assert "llm, vae" in caught.value.cause
    with pytest.raises(InputError, match="llm"):
        model_file(SERVER, companions={"llm": "x.gguf"})


def test_files_beside_a_model_are_looked_at_as_models_are(tmp_path: Path) -> None:
    (tmp_path / "weights.ckpt").write_bytes(b"\x80\x02}q\x00.")
    picture = the_catalog().component("stable-diffusion.cpp").server
    assert picture is not None
    find = functools.partial(
        model_of, "tiny", picture, Home(tmp_path), trust=False, say=print, progress=PlainProgress()
    )
    found = find(
        companions={"vae": str(tmp_path / "models" / "tiny" / str(GENERATED) / "tiny-picture-taesd.gguf")}
    )
    assert found is not None and set(found.companions) == {"llm", "taesd", "vae"}
    with pytest.raises(InputError, match=r"weights\.ckpt has pickled"):
        find(companions={"vae": str(tmp_path / "weights.ckpt")})


def test_pickled_weights_that_are_trusted_are_taken_by_a_server_that_can_load_them(tmp_path: Path) -> None:
    (tmp_path / "weights.ckpt").write_bytes(b"\x80\x02}q\x00.")
    find = functools.partial(
        model_of,
        str(tmp_path / "weights.ckpt"),
        home=Home(tmp_path),
        companions={},
        say=print,
        progress=PlainProgress(),
    )
    catalog = the_catalog()
    for name in ("stable-diffusion.cpp", "stable-diffusion.cpp-hip"):
        server = catalog.component(name).server
        assert server is not None
        with pytest.raises(InputError) as caught:
            find(server, trust=False)
        assert "pickled weights" in caught.value.message and "--trust-model" in caught.value.next_step
        assert (found := find(server, trust=True)) is not None and found.format == "pickled"
    llama = catalog.component("llama.cpp").server
    assert llama is not None
    with pytest.raises(InputError) as caught:
        find(llama, trust=False)
    assert "this stack takes GGUF" in caught.value.cause


@pytest.mark.parametrize(
    ("model", "stack"),
    [
        ("", "llama"),
        ("tiny", "llama"),
        ("tiny:whisper", "whisper"),
        ("tiny:picture", "stable-diffusion"),
        ("a.gguf", "llama"),
        ("a.bin", "whisper"),
        ("a.safetensors", "stable-diffusion"),
    ],
)
def test_the_stack_is_one_that_likes_the_model(model: str, stack: str, tmp_path: Path) -> None:
    assert choose.best_stack(the_catalog(), "gfx1151", Home(tmp_path), model).startswith(f"{stack}-")


def test_a_line_for_a_shell_sends_what_ask_sends(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    request = FirstRequest(path="/hear", form={"response_format": "json"}, sound="file", answer="text")
    words = shlex.split(curl(STATE, request, folder))
    assert words == [
        "curl",
        "http://127.0.0.1:80/hear",
        "-F",
        "response_format=json",
        "-F",
        f"file=@{folder}/sound.wav",
    ]
    said = curl(STATE, FirstRequest(path="/say", body='{"prompt": "it\'s"}', answer="x"), folder)
    assert shlex.split(said)[-2:] == ["-d", '{"prompt": "it\'s"}']


def test_what_it_cannot_compute_on_is_refused() -> None:
    with pytest.raises(InputError, match="npu"):
        compute_named(SERVER, "npu")


@each(
    "wrong",
    [
        {"command": ["{artifact}/serve", "{file}"]},
        {"command": ["{artifact}/serve"]},
        {"key": ["--key", "secret"]},
        {"health": "health"},
        {"key_variable": "SERVER_KEY"},
        {"key": [], "key_variable": "not a variable"},
        {"port": 0},
        {"page": "pages/chat"},
        {"command": ["{artifact}/serve", "{model}", "--path", "{page}"]},
        {"request": {"path": "/", "body": "{not json", "answer": "x"}},
        {"request": {"path": "/", "answer": "x"}},
        {"request": {"path": "/", "body": "{}", "sound": "file", "answer": "x"}},
        {"request": {"path": "/", "body": "{}", "answer": "x", "picture": "wide"}},
        {"command": ["{artifact}/serve"], "alone": ["{model}"], "parted": ["--part"]},
        {"companion": [{"name": "llm", "summary": "reads", "words": ["--llm", "{file}"]}]},
        {
            "parted": ["{model}"],
            "companion": [{"name": "llm", "summary": "reads", "words": ["--llm", "{model}"]}],
        },
        {"compute": [{"name": "gpu", "summary": "twice"}]},
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Server.model_validate(SERVER.model_dump() | wrong)


@each("name", UNPACKED)
def test_every_shipped_server_can_be_started_without_a_card_and_asked_something(name: str) -> None:
    server = the_catalog().component(name).server
    assert server is not None
    assert server.compute
    words = words_of(server, PLACES, ("gfx1151",), server.compute[0], keyed=bool(server.key))
    assert words[0].startswith("/a/")
    assert "127.0.0.1" in words
    for one in server.flags:
        assert {*one.targets} <= {*the_catalog().targets}, one.words
    assert server.request is not None
    assert server.request.sound or isinstance(json.loads(server.request.body), dict)
    assert server.tiny in MAKERS
    assert set(MAKERS[server.tiny].companions) <= {one.name for one in server.companion}
    assert MAKERS[server.tiny].format in server.models


def test_a_card_of_this_machine_is_needed_only_where_it_is_asked_for() -> None:
    component = the_catalog().component("llama.cpp")
    assert choose.compute_for(component, "", "").name == "cpu"
    assert choose.compute_for(component, "gfx1151", "software").env
    with pytest.raises(InputError, match="no GPU here"):
        choose.compute_for(component, "", "gpu")


@each("name", SERVED)
def test_the_files_that_a_server_shows_or_reads_are_in_the_catalog(name: str) -> None:
    server = the_catalog().component(name).server
    assert server is not None
    told = [word.removeprefix("{page}") for word in server.command if "{page}" in word]
    assert bool(told) == bool(server.page)
    for one in told:
        assert (DATA / server.page / (one.removeprefix("/") or "index.html")).is_file()


@each(
    ("more", "why"),
    [
        ({"keeps": ("models",)}, "keeps and {data}"),
        ({"env": {"KEPT": "{data}"}}, "keeps and {data}"),
        ({"env": {"KEPT": "{elsewhere}"}}, "{elsewhere} is not one of"),
        ({"keeps": ("../models",), "env": {"KEPT": "{data}"}}, "is not the name of a folder below another"),
        ({"keeps": ("/models",), "env": {"KEPT": "{data}"}}, "is not the name of a folder below another"),
        ({"models": ("safetensors",)}, "{model} is not in its command"),
        ({"needs_model": False}, "it needs none anyway"),
    ],
    ids=["kept nowhere", "nothing kept", "no such place", "up", "elsewhere", "a model", "no model"],
)
def test_a_recipe_says_what_its_server_keeps_and_takes(more: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(why)):
        Server.model_validate({"command": ["x"], "port": 1, "health": "/", **more})


def test_a_server_may_look_for_models_itself() -> None:
    told = {"command": ["x", "{data}"], "keeps": ["models/one"], "models": ["safetensors"]}
    found = Server.model_validate({**told, "needs_model": False, "port": 1, "health": "/"})
    assert found.keeps == ("models/one",)


def test_a_server_of_our_own_has_a_plain_environment_and_its_devices_variables() -> None:
    lock = read_lock(next((DATA / "locks" / "llama-vulkan").iterdir()))
    other = lock.components[0].model_copy(update={"name": "other", "env": {"OTHER": "1"}})
    lock = lock.model_copy(update={"components": (other, *lock.components)})
    cpu = SERVER.compute[0].model_copy(update={"env": {"A": "1"}})
    assert environment_for(the_catalog().component("llama.cpp"), the_catalog(), lock, cpu) == {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "XDG_CACHE_HOME": "/cache",
        "A": "1",
    }
    gpu = compute_named(SERVER, "gpu")
    quirks = environment(the_catalog(), the_catalog().target(lock.request.gpu[0]), "run")
    optional = {one.variable for one in quirks if one.need == "optional"}
    assert optional
    assert not optional & {*environment_for(the_catalog().component("llama.cpp"), the_catalog(), lock, gpu)}


OWN = SERVER.model_copy(
    update={"reserved": ("-m", "SERVE_KEY"), "key_variable": "", "env": {"HOST": "{host}"}}
)


@pytest.mark.parametrize("option", ["--port", "--port=8", "--por", "--key", "-m"])
def test_options_that_rocwright_sets_are_refused_by_name(option: str) -> None:
    with pytest.raises(InputError, match=f"^{option.partition('=')[0]} cannot be set"):
        check_own(OWN, ["--threads", "4", option, "80"], ())


@pytest.mark.parametrize("variable", ["HOST", "SERVE_KEY"])
def test_variables_that_rocwright_sets_are_refused_by_name(variable: str) -> None:
    with pytest.raises(InputError, match=f"^{variable} cannot be set"):
        check_own(OWN, (), [variable])


def test_other_options_and_variables_are_the_users() -> None:
    check_own(OWN, ["--threads", "4", "-c", "4096", "--", "m"], ["THREADS"])


def test_an_underscore_stands_for_a_dash() -> None:
    vllm = the_catalog().component("vllm").server
    assert vllm is not None
    with pytest.raises(InputError, match="--api-key cannot be set"):
        check_own(vllm, ["--api_key", "secret"], ())
