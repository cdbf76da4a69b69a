"""The page of the servers that `rocwright run` started: real processes, real state files, real logs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from rocbase.processes.outlive import boot_id
from rocbase.processes.owner import start_time
from rocwright.home import Home
from rocwright.serving import state
from rocwright.serving.model import ServerState
from rocwright.web import servers
from tests.web.filled import a_server
from tests.web.serving import Served

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def running(home: Home) -> Iterator[ServerState]:
    """A server whose process is there."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
        kept = a_server(home, "chat", pid=child.pid, start=start_time(child.pid) or 0, boot=boot_id())
        yield kept
        child.kill()


def page(served: Served) -> str:
    text: str = served.client().get("/servers").text
    return text


def test_a_server_that_runs_is_shown_with_all_that_is_needed_to_use_it(
    served: Served, running: ServerState, home: Home
) -> None:
    state.log_of(home, "chat").write_text("loading\nready\n")
    text = page(served)
    assert '<span class="look running">running</span>' in text and "1 of 1 running" in text
    for said in ("llama-vulkan", "llama.cpp 11312", "tiny.gguf", "debian:sid", "ready", "OpenAI API"):
        assert said in text
    assert f'href="{running.url}"' in text and f'datetime="{running.begun}"' in text
    assert "rocwright restart" in text, "the page says what starts and ends servers"
    assert "/models/" not in text, "where a model lies is for who started it"


def test_the_matrix_does_not_say_that_nothing_runs(served: Served, running: ServerState, home: Home) -> None:
    a_server(home, "gone", boot="another")
    text = served.client().get("/").text
    assert "Nothing runs" not in text and "No build runs." in text
    assert '<a href="/servers#chat">chat</a>' in text and "#gone" not in text


def test_a_server_that_ended_says_how_it_is_started_again(served: Served, home: Home) -> None:
    a_server(home, "chat", boot="another")
    text = page(served)
    assert '<span class="look ended">ended</span>' in text
    assert "<code>rocwright restart chat</code>" in text and "<title>1 ended" in text


def test_the_page_starts_and_ends_nothing(served: Served, running: ServerState) -> None:
    client = served.client("read", "run", "promote")
    main = client.get("/servers").text.partition("<main")[2]
    assert "<form" not in main and "<button" not in main
    assert client.post("/servers").status_code == 405


def test_a_log_is_shown_without_markup_terminal_codes_and_secrets(
    served: Served, running: ServerState, home: Home
) -> None:
    state.key_of(home, "chat").write_text("gHq3-the-key-that-was-made\n")
    lines = (
        EVIL,
        "\x1b[31mred\x1b[0m",
        "Authorization: Bearer abc123abc123",
        "key gHq3-the-key-that-was-made",
    )
    state.log_of(home, "chat").write_text("".join(f"{line}\n" for line in lines))
    text = page(served)
    assert EVIL not in text and "&lt;script&gt;" in text
    assert "red" in text and "\x1b" not in text
    assert "abc123abc123" not in text
    assert "gHq3" not in text


def test_of_a_long_log_only_the_end_is_read(served: Served, running: ServerState, home: Home) -> None:
    with state.log_of(home, "chat").open("w") as file:
        file.writelines(f"line {number} {'x' * 5000}\n" for number in range(2000))
    text = page(served)
    assert "line 1999" in text and "line 1990" not in text
    assert len(text) < servers.TAIL + 20_000


def test_a_container_engine_that_is_gone_leaves_the_others_on_the_page(
    served: Served, running: ServerState, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_server(home, "in-podman", place="podman", boot=boot_id())
    monkeypatch.setenv("PATH", "/nowhere")
    text = page(served)
    assert '<span class="look not-known">not known</span>' in text and "podman" in text
    assert '<span class="look running">running</span>' in text


def test_many_who_look_at_once_ask_once(
    served: Served, running: ServerState, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = state.runs

    def runs(one: ServerState) -> bool:
        asked.append(one.name)
        return real(one)

    monkeypatch.setattr(state, "runs", runs)
    client = served.client()
    for _ in range(5):
        assert client.get("/servers").status_code == 200
    assert asked == ["chat"]


def test_who_may_not_read_sees_no_server(served: Served, running: ServerState) -> None:
    served.site.access.open_ = False
    assert served.client().get("/servers").status_code == 303
    assert "llama-vulkan" in served.client("read").get("/servers").text
