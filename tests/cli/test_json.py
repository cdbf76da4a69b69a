"""Every verb that reports has `--json`."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from rocwheel.cli import cli as rocwheel
from rocwright.cli.group import cli as rocwright

REPORTS_NOTHING = {
    "catalog schema": "JSON without being asked",
    "completion": "a program of the shell's",
    "exec-step": "run by programs",
    "farm init": "writes certificates",
    "farm up": "runs until it is ended",
    "index serve": "names another program",
    "index yank": "writes a mark",
    "init": "writes a file",
    "notify failed": "sends",
    "notify now": "sends",
    "patch save": "writes edits",
    "records export": "writes a file",
    "records import": "reads one",
    "records vacuum": "makes the database smaller",
    "serve token add": "shows a token once",
    "serve token remove": "removes one",
    "shell": "a shell",
    "store policy": "JSON without being asked",
    "trust add": "writes a setting",
    "trust remove": "removes one",
    "trust revoke": "removes a key",
    "wheel index serve": "names another program",
    "wheel index yank": "writes a mark",
}


def verbs(
    command: click.Command, context: click.Context, path: str = ""
) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from verbs(inner, context, f"{path} {name}".lstrip())


@pytest.mark.parametrize("program", [rocwright, rocwheel], ids=["rocwright", "rocwheel"])
def test_every_verb_that_reports_has_json(program: click.Group) -> None:
    found = dict(verbs(program, click.Context(program)))
    without = {
        name for name, one in found.items() if not any("--json" in parameter.opts for parameter in one.params)
    }
    assert without == REPORTS_NOTHING.keys() & found.keys()
