"""Which model a server is given, and what is said where it gets none."""

from __future__ import annotations

import pytest

from rocbase.errors import InputError
from rocwright.catalog.server import Server
from rocwright.execution.progress import PlainProgress
from rocwright.home import Home
from rocwright.serving.model_file import model_of

LLAMA = Server(command=("x", "{model}"), port=1, health="/", models=("gguf",), tiny="llama")
VLLM = Server(command=("x", "{model}"), port=1, health="/", models=("transformers",))


def refused(asked: str, server: Server, home: Home) -> InputError:
    with pytest.raises(InputError) as error:
        model_of(
            asked, server, home, companions={}, trust=False, say=lambda _: None, progress=PlainProgress()
        )
    return error.value


def test_a_trial_is_offered_where_there_is_a_model_for_it(home: Home) -> None:
    told = refused("", LLAMA, home)
    assert told.cause == "it serves one: GGUF"
    assert told.next_step == (
        "--model FILE or hf:OWNER/NAME/FILE, or --model tiny for a trial without a download"
    )
    told = refused("", VLLM, home)
    assert told.cause == "it serves one: a folder of transformers"
    assert told.next_step == "--model FOLDER or hf:OWNER/NAME"


@pytest.mark.parametrize("asked", ["tiny", "tiny:whisper"])
def test_a_small_model_that_the_server_does_not_take_is_not_made(asked: str, home: Home) -> None:
    told = refused(asked, VLLM, home)
    assert told.message == f"there is no small model that this stack takes: {asked}"
    assert "it takes a folder of transformers" in told.cause and "--model FOLDER" in told.next_step
    assert not list(home.models.rglob("tiny-*"))
