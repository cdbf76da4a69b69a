"""A server that `rocwright run` started, for the tests that ask one something."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.stacks import rocwright
from tests.serving.conftest import free_port

from rocwright.home import Home
from rocwright.sandbox import lasting


@dataclass(slots=True)
class Served:
    """A running server: what --json tells of it, and the key to ask it with."""

    state: dict[str, Any]
    mark: str
    key: str = ""

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        url = f"{self.state['url']}/v1/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=300) as reply:
            found: dict[str, Any] = json.load(reply)
        return found

    def get(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.state['url']}{path}", timeout=60) as reply:
            answer: dict[str, Any] = json.load(reply)
        return answer

    def headers(self, origin: str) -> dict[str, str]:
        """What a page of that origin is told."""
        request = urllib.request.Request(f"{self.state['url']}/v1/models", headers={"Origin": origin})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return dict(reply.headers.items())


@contextmanager
def served(home: Home, folder: Path, *words: str) -> Iterator[Served]:
    """The tiny model, served by llama-vulkan; stopped at the end, and nothing of it is left."""
    asked = ("llama-vulkan", "--gpu", "gfx1151", "--model", "tiny", "--detach", "--yes", "--json")
    state = json.loads(rocwright(home, folder, "run", *asked, "--port", str(free_port()), *words))
    name = state["name"]
    mark = json.loads((home.servers / name / "server.json").read_text())["mark"]
    try:
        yield Served(state, mark, state["key"] if isinstance(state["key"], str) else "")
    finally:
        rocwright(home, folder, "stop", name)
    assert not lasting.processes(mark)
    assert list(home.servers.iterdir()) == []


def containers(server: Served, engine: str) -> list[str]:
    """The container of a server, by its id; none where it is gone."""
    words = [engine, "ps", "--all", "--quiet", "--filter", f"name={server.mark}"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
