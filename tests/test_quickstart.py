"""`make quickstart`: its lines are commands that exist, and the last one leaves a server that answered."""

from __future__ import annotations

import subprocess
from pathlib import Path

import click

from rocwright.cli.group import cli

ROOT = Path(__file__).parents[1]


def _parsed(words: list[str]) -> dict[str, object]:
    """What the verb takes the words for; a word that it does not know is an error."""
    verb = cli.get_command(click.Context(cli), words[0])
    assert verb is not None, words[0]
    return dict(verb.make_context(words[0], words[1:]).params)


def test_its_lines_build_and_leave_a_server_that_was_asked_something() -> None:
    # the command of each line, printed and not run; what makes .venv is as old as it looks
    told = subprocess.run(
        ["make", "-n", "-o", ".venv/ready", "quickstart"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = [line.split()[1:] for line in told.splitlines() if line.startswith(".venv/bin/rocwright ")]
    build, stop, run = (_parsed(words) | {"verb": words[0]} for words in lines)
    assert (build["verb"], stop["verb"], run["verb"]) == ("build", "stop", "run")
    assert [words[1] for words in (lines[0], lines[2])] == ["llama-vulkan"] * 2
    assert lines[1][1] == run["name"], "the server of the last time is stopped, and no other"
    assert {"--try", "--detach"} <= {*lines[2]} and run["model"] == "tiny"
