"""`rocwright run STACK -- PROGRAM`, `--shell` and `--jupyter`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from rocbase.cli.options import say

if TYPE_CHECKING:
    from rocwright.serving.api import StartedServer
    from rocwright.serving.environments import Environment

# Where a command line keeps what stands behind `--`.
PROGRAM = "rocwright.program"

SHELL = ("/bin/sh", "-c", "if command -v bash >/dev/null; then exec bash -i; else exec sh -i; fi")


class WithProgram(click.Command):
    """A verb whose last words, behind `--`, are a program with its own options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        index = args.index("--") if "--" in args else len(args)
        ctx.meta[PROGRAM] = tuple(args[index + 1 :])
        return super().parse_args(ctx, args[:index])


def variables(_: click.Context, __: click.Parameter, words: Sequence[str]) -> dict[str, str]:
    """The variables that --env sets."""
    return _pairs(words, "NAME=VALUE")


def requirements(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the packages that --require names; refuse what pip could not read before anything is built."""
    from packaging.requirements import InvalidRequirement, Requirement

    for text in texts:
        try:
            Requirement(text)
        except InvalidRequirement as error:
            raise click.BadParameter(f"{text!r} is no requirement such as 'pandas>=2'.") from error
    return texts


@dataclass(frozen=True, slots=True, kw_only=True)
class With:
    """What --with names: files that belong to a model, and optional components of a stack."""

    files: dict[str, str]
    components: tuple[str, ...]


def companions(_: click.Context, __: click.Parameter, words: Sequence[str]) -> With:
    """The files that --with names, and the components."""
    return With(
        files=_pairs([word for word in words if "=" in word], "NAME=FILE"),
        components=tuple(word for word in words if "=" not in word),
    )


def _pairs(words: Sequence[str], form: str) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name.isidentifier() or not equals or not value.isprintable():
            raise click.BadParameter(f"{word!r} is not {form} on a single line.")
        pairs[name] = value
    return pairs


_ANYTHING = frozenset(
    {"stack", "stack_origin", "gpu", "base", "engine", "sets", "beside", "accept_missing", "yes"}
)
# What has an effect on each of the things that run starts, by the names of its parameters.
_TAKES = {
    "a server": {
        "model",
        "trust_model",
        "env",
        "name",
        "host",
        "port",
        "place",
        "on",
        "key",
        "detach",
        "dry",
        "tries",
        "require",
    }
    | {"as_json"},
    "a program": {"shell", "env", "require", "place", "dry"},
    "--jupyter": {"jupyter", "require", "name", "host", "port", "detach", "as_json"},
    "--image": {"image", "require"},
}


def check_words(context: click.Context, mode: str) -> None:
    """Refuse what would be without effect. Raises click.UsageError."""
    ignored = [
        param
        for param in context.command.params
        if param.name is not None
        and context.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
        and param.name not in _ANYTHING | _TAKES[mode]
    ]
    if ignored:
        flags = ", ".join(param.opts[0] for param in ignored)
        raise click.UsageError(f"{flags} has no effect on {mode}.")
    with_: With = context.params["beside"]
    if with_.files and mode != "a server":
        raise click.UsageError(f"--with NAME=FILE has no effect on {mode}; --with NAME adds a component.")
    of_stack = with_.components or context.params["sets"] or context.params["accept_missing"]
    if of_stack and not context.params["stack"]:
        raise click.UsageError(
            "--set, --with NAME and --accept-missing want a STACK; a project file says these itself."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The stack that was asked for, and for what; none is that of the project in this folder."""

    stack: str | None
    gpu: str
    base: str
    versions: dict[str, str]
    optional: tuple[str, ...]
    agree: Callable[[str], None]
    accept_missing: tuple[str, ...] = ()


def agreement(context: click.Context, *, yes: bool) -> Callable[[str], None]:
    """Return what hears the needs of a long build, and asks at a terminal. Raises InputError elsewhere."""

    def agree(needs: str) -> None:
        say(f"needs  {needs}")
        if yes:
            return
        if sys.stdin.isatty():
            click.confirm("Build it now?", default=True, abort=True, err=True)
            return
        from rocbase.errors import InputError

        raise InputError(
            f"{context.params['stack'] or 'the stack'} has to be built first",
            cause="a build of more than 5 minutes or 2 GB starts only after a question, or with --yes",
            next_step="add --yes to the command",
        )

    return agree


def check_folder() -> None:
    """Refuse to show the current folder before anything is locked or built."""
    from rocwright.serving import programs

    programs.check_folder()


def had(chosen: Chosen, require: Sequence[str], engine: str | None, *, dry: bool = False) -> Environment:
    """The environment of a wheel stack; what is there already is had in milliseconds. A `dry` run refuses one
    that is not there."""
    from rocwright.serving import programs

    stack, gpu, base = chosen.stack or "", chosen.gpu, chosen.base
    versions, optional, accept = chosen.versions, chosen.optional, chosen.accept_missing
    environment = programs.known_environment(
        stack,
        gpu=gpu,
        base=base,
        versions=versions,
        optional=optional,
        accept_missing=accept,
        extra=require,
    )
    if environment is not None:
        return environment
    if dry:
        from rocwright.serving.wheels import not_installed
        from rocwright.verify.proven import ORIGIN

        raise not_installed(stack.partition(ORIGIN)[0])
    from rocwright.execution.progress import choose_progress

    return programs.environment(
        stack,
        gpu=gpu,
        base=base,
        versions=versions,
        optional=optional,
        accept_missing=accept,
        extra=require,
        engine=engine,
        progress=choose_progress(),
        agree=chosen.agree,
        say=say,
    )


def run_program(environment: Environment, argv: Sequence[str], env: dict[str, str], place: str) -> int:
    """Run a program, or a shell where none is given; its exit status."""
    from rocwright.serving import programs

    return programs.run_program(environment, argv or SHELL, env=env, place=place)


def show_program(environment: Environment, argv: Sequence[str], env: dict[str, str]) -> None:
    """Print the command that would run a program, or a shell where none is given."""
    from rocwright.serving import programs
    from rocwright.serving.verbs.servers import typed

    click.echo(typed(programs.program_command(environment, argv or SHELL, env=env)))


def start_notebook(
    chosen: Chosen,
    require: tuple[str, ...],
    engine: str | None,
    *,
    name: str,
    host: str,
    port: int,
    detach: bool,
) -> StartedServer:
    """Start a notebook server in the environment of a wheel stack."""
    from rocwright.serving import programs
    from rocwright.serving.state import check_name

    if name:
        check_name(name)
    environment = had(chosen, (*programs.notebook_packages(), *require), engine)
    return programs.start_notebook(environment, name=name, host=host, port=port, detach=detach, say=say)


def write_image(environment: Environment, folder: str) -> None:
    """Write an environment as an image, and tell its files."""
    from rocwright.serving import programs

    for path in programs.write_image(environment, folder):
        click.echo(str(path))
