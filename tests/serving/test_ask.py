"""Asking a server something: the answer in the shape that its recipe tells, or an error."""

from __future__ import annotations

import base64
import io
import json
import struct
import time
import wave
import zlib
from collections.abc import Callable, Iterator
from email import message_from_bytes
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import urlsplit

import pytest

from rocbase.errors import CheckError, InputError
from rocwright.catalog.server import FirstRequest
from rocwright.serving import ports
from rocwright.serving.ask import ask
from rocwright.serving.model import ServerState
from rocwright.serving.ready import answers
from tests.serving.conftest import STATE
from tests.sources.test_pace import BODY, HEADERS, TRAILER, dripping

SOUND = FirstRequest(path="/say", form={"response_format": "json"}, sound="file", answer="text")
PICTURE = FirstRequest(path="/say", body='{"prompt": "Hi"}', answer="data.0.b64_json", picture="3x2")
REQUEST = FirstRequest(path="/say", body='{"prompt": "Hi"}', answer="choices.0.text")
Serve = Callable[[int, object], ServerState]


def heard(kind: str, asked: bytes) -> bool:
    """Whether what was posted is the prompt, or a form with a WAV file, as Python's own parser reads it."""
    if kind == "application/json":
        return bool(json.loads(asked) == {"prompt": "Hi"})
    form = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + asked, policy=HTTP)
    parts = {part.get_param("name", header="content-disposition"): part for part in form.iter_parts()}
    assert parts["response_format"].get_content().strip() == "json"
    assert parts["file"].get_content_type() == "audio/wav"
    sent = parts["file"].get_payload(decode=True)
    assert isinstance(sent, bytes)
    with wave.open(io.BytesIO(sent)) as sound:
        return (sound.getframerate(), sound.getnframes()) == (16_000, 32_000)


def png(width: int, height: int) -> bytes:
    """A PNG of zeros."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress(bytes((3 * width + 1) * height)))
    return b"\x89PNG\r\n\x1a\n" + head + rows + chunk(b"IEND", b"")


def drawn(data: bytes) -> dict[str, object]:
    return {"data": [{"b64_json": base64.b64encode(data).decode()}]}


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A server that gives one answer, and none without the key."""
    running: list[HTTPServer] = []

    def start(status: int, reply: object) -> ServerState:
        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = self.rfile.read(int(self.headers["Content-Length"]))
                good = heard(self.headers["Content-Type"], asked) and self.path == "/say"
                keyed = self.headers["Authorization"] == "Bearer secret"
                self.send_response(status if good and keyed else 401)
                self.end_headers()
                self.wfile.write(json.dumps(reply).encode())

            def log_message(self, *_: object) -> None:
                """Nothing in the tests' output."""

        server = HTTPServer(("127.0.0.1", 0), Answers)
        running.append(server)
        Thread(target=server.serve_forever, daemon=True).start()
        return STATE.model_copy(update={"port": server.server_port})

    yield start
    for one in running:
        one.shutdown()
        one.server_close()


def test_the_answer_is_taken_from_where_the_recipe_says(serve: Serve) -> None:
    assert ask(serve(200, {"choices": [{"text": "hello"}]}), REQUEST, "secret") == "hello"


@pytest.mark.parametrize("reply", [{}, {"choices": []}, [], "text", {"choices": [{"other": 1}]}])
def test_an_answer_of_another_shape_is_a_failure(serve: Serve, reply: object) -> None:
    with pytest.raises(CheckError, match="did not answer as it should") as caught:
        ask(serve(200, reply), REQUEST, "secret")
    assert "choices.0.text" in caught.value.cause


@pytest.mark.parametrize("begin", [HEADERS, BODY, TRAILER], ids=["headers", "body", "trailer"])
def test_a_server_that_drips_holds_nobody(begin: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocwright.serving.ask._SECONDS", 0.5)
    monkeypatch.setattr("rocwright.serving.ready._ANSWER_SECONDS", 0.5)
    began = time.monotonic()
    with dripping(begin, None) as url:
        state = STATE.model_copy(update={"port": urlsplit(url).port})
        with pytest.raises(CheckError, match="did not answer as it should"):
            ask(state, REQUEST)
        assert answers(state.url, state.health) == (begin != HEADERS)
    assert time.monotonic() - began < 60


def test_an_answer_nested_without_end_is_a_failure() -> None:
    data = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"[" * 100_000
    with dripping(data, None) as url, pytest.raises(CheckError, match="did not answer"):
        ask(STATE.model_copy(update={"port": urlsplit(url).port}), REQUEST)


def test_a_sound_is_sent_as_the_file_of_a_form(serve: Serve) -> None:
    assert ask(serve(200, {"text": " hello"}), SOUND, "secret") == " hello"


def test_a_picture_is_told_by_its_size(serve: Serve) -> None:
    assert ask(serve(200, drawn(png(3, 2))), PICTURE, "secret").startswith("a picture of 3x2, ")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (png(2, 3), "one of 2x3 came"),
        (png(3, 2)[:-5], "cut short"),
        (png(3, 2)[:-12], "cut short"),
        (png(3, 2).replace(b"IDAT", b"IDAX"), "damaged"),
        (b"GIF89a", "does not begin as a PNG"),
    ],
    ids=["another size", "cut in a chunk", "without its end", "a changed chunk", "no PNG"],
)
def test_what_is_not_the_picture_that_was_asked_for_is_a_failure(serve: Serve, data: bytes, why: str) -> None:
    with pytest.raises(CheckError) as caught:
        ask(serve(200, drawn(data)), PICTURE, "secret")
    assert why in caught.value.cause


def test_a_picture_that_is_no_base64_is_a_failure(serve: Serve) -> None:
    with pytest.raises(CheckError) as caught:
        ask(serve(200, {"data": [{"b64_json": "not base64"}]}), PICTURE, "secret")
    assert "no picture" in caught.value.cause


def test_a_refusal_is_told_with_its_status(serve: Serve) -> None:
    with pytest.raises(CheckError) as caught:
        ask(serve(200, {"choices": [{"text": "hello"}]}), REQUEST, "wrong")
    assert "401" in caught.value.cause


def test_a_port_in_use_is_passed_over_unless_it_was_named(serve: Serve) -> None:
    taken = serve(200, {}).port
    said: list[str] = []
    assert ports.free_port("127.0.0.1", taken, (), said.append) > taken
    assert f"port {taken} is in use" in said[0]
    with pytest.raises(InputError, match="in use"):
        ports.check_free("127.0.0.1", taken, ())
