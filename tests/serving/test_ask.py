"""Asking a server something: the answer in the shape that its recipe tells, or an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from rocwheel.errors import CheckError, InputError
from rocwright.catalog.server import FirstRequest
from rocwright.serving import ports
from rocwright.serving.ask import ask
from rocwright.serving.model import ServerState

REQUEST = FirstRequest(path="/say", body='{"prompt": "Hi"}', answer="choices.0.text")
Serve = Callable[[int, object], ServerState]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A server that gives one answer, and none without the key."""
    running: list[HTTPServer] = []

    def start(status: int, reply: object) -> ServerState:
        class Answers(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = self.rfile.read(int(self.headers["Content-Length"]))
                good = json.loads(asked) == {"prompt": "Hi"} and self.path == "/say"
                keyed = self.headers["Authorization"] == "Bearer secret"
                self.send_response(status if good and keyed else 401)
                self.end_headers()
                self.wfile.write(json.dumps(reply).encode())

            def log_message(self, *_: object) -> None:
                """Nothing in the tests' output."""

        server = HTTPServer(("127.0.0.1", 0), Answers)
        running.append(server)
        Thread(target=server.serve_forever, daemon=True).start()
        return ServerState(
            name="small",
            stack="small",
            component="small",
            version="1",
            gpu=("gfx1151",),
            base="debian:sid",
            on="cpu",
            model="",
            place="host",
            host="127.0.0.1",
            port=server.server_port,
            health="/health",
            mark="mark",
            boot="",
            begun="2026-11-25T15:00:00Z",
        )

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
