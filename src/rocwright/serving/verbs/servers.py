"""What the verbs of running servers print."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from rocwright.serving.model import ANY_ADDRESS, KEY_FILE, SOUND, address
from rocwright.serving.ports import lan_address

if TYPE_CHECKING:
    from pathlib import Path

    from rocwright.catalog.server import FirstRequest
    from rocwright.serving.api import StartedServer
    from rocwright.serving.model import ServerState


# Characters of an answer that are shown.
_MOST_ANSWER = 400


def as_data(server: ServerState, *, runs: bool) -> dict[str, Any]:
    """A server for --json."""
    fields = server.model_dump(mode="json", exclude={"mark", "boot", "health", "ending"})
    return fields | {"url": server.url, "running": runs}


def show(running: StartedServer, *, detached: bool, answer: str | None = None) -> None:
    """Print where a server is, how to ask it something, and how to end it; a key only if it is new."""
    server = running.server
    label = f"{server.component} {server.version} on {server.on}"
    click.echo(f"{server.name} runs: {label}, after {running.seconds:.1f} s")
    rows = [*_places(server), *_keys(running)]
    wide = max((len(name) for name, _ in rows), default=0)
    for name, text in rows:
        click.echo(f"  {name:<{wide}}  {text}")
    if running.request is not None:
        click.echo(f"\n  {curl(server, running.request, running.folder)}\n")
    if answer is not None:
        click.echo(f"it answers: {answer[:_MOST_ANSWER]!r}\n")
    click.echo(f"rocwright stop {server.name}" if detached else "Ctrl-C ends it")


def _places(server: ServerState) -> Iterator[tuple[str, str]]:
    yield from server.addresses.items()
    if server.host in ANY_ADDRESS and (lan := lan_address()):
        yield "network", address(lan, server.port)
    if server.keeps:
        yield "keeps", server.keeps


def _keys(running: StartedServer) -> Iterator[tuple[str, str]]:
    if running.key:
        yield "key", f"{running.key}   (shown this once)"
    if running.server.key:
        yield "key file", str(running.folder / KEY_FILE)


def curl(server: ServerState, request: FirstRequest, folder: Path) -> str:
    """A first request, as a line for a shell; the key is not on it. What is sent lies in the server's
    `folder`."""
    key = ' -H "Authorization: Bearer $KEY"' if server.key else ""
    to = shlex.join(["curl", f"{server.url}{request.path}"])
    if request.body:
        body = shlex.quote(json.dumps(json.loads(request.body)))
        return f"{to} -H 'Content-Type: application/json'{key} -d {body}"
    fields = [f"{name}={value}" for name, value in request.form.items()]
    fields.append(f"{request.sound}=@{folder / SOUND}")
    return f"{to}{key} " + " ".join(shlex.join(["-F", field]) for field in fields)


def typed(words: tuple[str, ...]) -> str:
    """A command as a person types it: a line for each option."""
    lines: list[list[str]] = [[]]
    for word in words:
        if word.startswith("--") and len(lines[-1]) > 0:
            lines.append([])
        lines[-1].append(word)
    return " \\\n    ".join(shlex.join(line) for line in lines)
