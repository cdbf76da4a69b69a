"""`rocwright run STACK -- PROGRAM`, `--shell` and `--jupyter`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from rocwheel.cli.common import say

if TYPE_CHECKING:
    from rocwright.api.serving import Running
    from rocwright.serving.environments import Environment

PROGRAM = "rocwright.program"
"""Where a command line keeps what stands behind `--`."""

SHELL = ("/bin/sh", "-c", "if command -v bash >/dev/null; then exec bash -i; else exec sh -i; fi")


class WithProgram(click.Command):
    """A verb whose last words, behind `--`, are a program with its own options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[PROGRAM] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


def variables(_: click.Context, __: click.Parameter, words: Sequence[str]) -> dict[str, str]:
    """The variables that --env sets."""
    return _pairs(words, "NAME=VALUE")


def companions(_: click.Context, __: click.Parameter, words: Sequence[str]) -> dict[str, str]:
    """The files that --with names."""
    return _pairs(words, "NAME=FILE")


def _pairs(words: Sequence[str], form: str) -> dict[str, str]:
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name.isidentifier() or not equals:
            raise click.BadParameter(f"{word!r} is not {form}.")
        found[name] = value
    return found


_ANYTHING = frozenset({"stack", "gpu", "base", "engine"})
_TAKES = {
    "a server": {
        "model",
        "trust_model",
        "name",
        "host",
        "port",
        "place",
        "on",
        "key",
        "beside",
        "detach",
        "dry",
        "tries",
    }
    | {"as_json"},
    "a program": {"shell", "env", "require", "place"},
    "--jupyter": {"jupyter", "require", "name", "host", "port", "detach", "as_json"},
    "--image": {"image", "require"},
}
"""What has an effect on each of the things that run starts, by the names of its parameters."""


def check_words(context: click.Context, what: str) -> None:
    """Refuse what would be without effect. Raises click.UsageError."""
    given = [
        one
        for one in context.command.params
        if one.name is not None
        and context.get_parameter_source(one.name) is ParameterSource.COMMANDLINE
        and one.name not in _ANYTHING | _TAKES[what]
    ]
    if given:
        told = ", ".join(one.opts[0] for one in given)
        raise click.UsageError(f"{told} has no effect on {what}.")


def had(stack: str | None, gpu: str, base: str, require: Sequence[str], engine: str | None) -> Environment:
    """The environment of a wheel stack; what is there already is had in milliseconds."""
    from rocwright.api import environments

    found = environments.known_environment(stack or "", gpu=gpu, base=base, extra=require)
    if found is not None:
        return found
    from rocwright.execution.progress import choose_progress

    return environments.environment(
        stack or "", gpu=gpu, base=base, extra=require, engine=engine, progress=choose_progress(), say=say
    )


def run_program(environment: Environment, argv: Sequence[str], env: dict[str, str], place: str) -> int:
    """Run a program, or a shell where none is given; its exit status."""
    from rocwright.api import environments

    return environments.run_program(environment, argv or SHELL, env=env, place=place)


def start_notebook(
    stack: str | None,
    gpu: str,
    base: str,
    require: tuple[str, ...],
    engine: str | None,
    *,
    name: str,
    host: str,
    port: int,
    detach: bool,
) -> Running:
    """Start a notebook server in the environment of a wheel stack."""
    from rocwright.api import environments

    environment = had(stack, gpu, base, (*environments.notebook_packages(), *require), engine)
    return environments.start_notebook(environment, name=name, host=host, port=port, detach=detach, say=say)


def write_image(environment: Environment, folder: str) -> None:
    """Write an environment as an image, and tell its files."""
    from rocwright.api import environments

    for path in environments.write_image(environment, folder):
        click.echo(str(path))
