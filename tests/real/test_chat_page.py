"""The chat page that llama.cpp's server shows, in a real browser, with an answer that is known beforehand."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.real.chatting import chat

from rocwright.catalog.load import the_catalog

pytestmark = pytest.mark.real

SERVER = the_catalog().component("llama.cpp").server
assert SERVER is not None
PAGE = next(one for one in the_catalog().folders if (one / SERVER.page).exists()) / SERVER.page
HOSTILE = "<img src=x onerror=\"document.title='taken'\"> "
MARKDOWN = """\
## A *title*

Some **bold** and `code`, a [page](https://example.org/x).
<script>document.title = "taken"</script>

1. first
2. second

- one
  - inner

| a | b |
|---|---|
| 1 | <b>2</b> |

```python
print("<b>hi</b>")
```
[bad](javascript:document.title='taken') ![x](https://example.org/x.png) [worse](data:text/html,x)
"""
MADE = {
    "DIV",
    "P",
    "H3",
    "EM",
    "STRONG",
    "CODE",
    "A",
    "OL",
    "UL",
    "LI",
    "TABLE",
    "TR",
    "TH",
    "TD",
    "PRE",
    "BUTTON",
}
"""Elements that an answer may become."""


class Model(BaseHTTPRequestHandler):
    """Answers as llama-server does: piece by piece, what it was asked last and how much was said before."""

    server: Known

    def do_GET(self) -> None:
        if self.path == "/":
            self._send(200, "text/html", (PAGE / "index.html").read_bytes())
        elif self._may():
            self._json(200, {"data": [{"id": "/models/small.gguf"}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._may():
            return
        self.server.asked.append(asked)
        said = asked["messages"]
        if said[-1]["content"] == "too much":
            self._json(400, {"error": {"message": "the request exceeds the context size"}})
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        pieces = [MARKDOWN[n : n + 7] for n in range(0, len(MARKDOWN), 7)]
        for piece in (
            pieces
            if said[-1]["content"] == "markdown"
            else (HOSTILE, "you said: ", said[-1]["content"], f" ({len(said)})")
        ):
            self._piece({"choices": [{"delta": {"content": piece}}]})
        timings = {"predicted_n": 412, "predicted_per_second": 35.25}
        self._piece({"choices": [{"delta": {}}], "timings": timings})
        self.wfile.write(b"data: [DONE]\n\n")

    def _piece(self, data: dict[str, Any]) -> None:
        told = json.dumps(data, ensure_ascii=False).encode()
        for part in (b"data: " + told[:20], told[20:] + b"\n\n"):  # a line in two reads
            self.wfile.write(part)
            self.wfile.flush()

    def _may(self) -> bool:
        if self.headers.get("Authorization", "") == self.server.wanted:
            return True
        self._json(401, {"error": {"message": "Invalid API Key"}})
        return False

    def _json(self, status: int, told: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(told).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        pass


class Known(ThreadingHTTPServer):
    """A server with a key, or none, and what it was asked."""

    wanted = ""
    asked: list[dict[str, Any]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


@pytest.fixture
def model() -> Iterator[Known]:
    with Known(("127.0.0.1", 0), Model) as made:
        made.asked = []
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


def test_an_answer_comes_and_what_was_said_goes_along(model: Known) -> None:
    with chat(model.url) as page:
        expect(page.page.locator("#model")).to_have_text("small.gguf")
        assert page.answer("grüß dich").endswith("you said: grüß dich (1)")
        assert page.answer("and again").endswith("you said: and again (3)")
        assert [one["role"] for one in model.asked[-1]["messages"]] == ["user", "assistant", "user"]
        page.page.get_by_role("button", name="New chat").click()
        assert page.answer("anew").endswith("(1)")
        assert page.wrong == []


def test_an_answer_is_text_and_nothing_else(model: Known) -> None:
    with chat(model.url) as page:
        assert HOSTILE.strip() in page.answer("hello")
        assert page.page.title() == "small.gguf"
        assert page.page.locator("article img").count() == 0


def test_markdown_is_shown_and_no_html_of_it(model: Known) -> None:
    with chat(model.url) as page:
        shown = page.answer("markdown")
        text = page.page.locator("article.assistant .text").last
        made = text.evaluate("box => [...box.querySelectorAll('*')].map((one) => one.tagName)")
        assert {*made} | {"DIV"} == MADE
        assert text.locator("strong").inner_text() == "bold"
        assert text.locator("ol li").count() == 2 and text.locator("ul li").count() == 2
        assert text.locator("pre code").inner_text() == 'print("<b>hi</b>")'
        assert text.locator("a").evaluate_all("links => links.map((one) => [one.href, one.rel])") == [
            ["https://example.org/x", "noopener noreferrer"],
            ["https://example.org/x.png", "noopener noreferrer"],
        ]
        assert '<script>document.title = "taken"</script>' in shown and "<b>2</b>" in shown
        assert "javascript:document.title" in shown and "data:text/html" in shown
        assert page.page.title() == "small.gguf" and page.wrong == []


def test_settings_go_along_and_the_speed_is_shown(model: Known) -> None:
    with chat(model.url) as page:
        page.answer("plain")
        assert model.asked[-1].keys() == {"messages", "stream"}
        page.page.locator("summary").click()
        page.page.get_by_label("System prompt").fill("Be brief.")
        page.page.get_by_label("Temperature").fill("0.5")
        page.page.get_by_label("Length").fill("64")
        page.answer("hello")
        asked = model.asked[-1]
        assert (asked["temperature"], asked["max_tokens"]) == (0.5, 64)
        assert asked["messages"][0] == {"role": "system", "content": "Be brief."}
        footer = page.page.locator("article.assistant footer").last
        assert "412 tokens, 35.3 tokens/s" in footer.inner_text()
        page.page.evaluate("navigator.clipboard.writeText = async (text) => { window.taken = text; }")
        footer.get_by_role("button", name="Copy").click()
        assert HOSTILE in page.page.evaluate("window.taken")


def test_a_key_is_asked_for_and_kept_in_the_tab_alone(model: Known) -> None:
    model.wanted = "Bearer secret"
    with chat(model.url) as page:
        page.page.get_by_label("The key of this server").fill("secret")
        page.page.get_by_role("button", name="Use it").click()
        assert page.answer("hello").endswith("you said: hello (1)")
        assert page.page.evaluate("[localStorage.length, document.cookie]") == [0, ""]


def test_what_the_server_refuses_is_shown_and_not_sent_again(model: Known) -> None:
    with chat(model.url) as page:
        page.write("too much")
        expect(page.page.locator("article.error")).to_contain_text("exceeds the context size")
        assert page.answer("less").endswith("you said: less (1)")


def test_nothing_is_wider_than_a_phone(model: Known) -> None:
    with chat(model.url) as page:
        page.answer("x" * 400)
        assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
