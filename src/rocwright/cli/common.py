"""Options that several verbs share, and the project that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from rocwright.flow import Project, project_in, project_of
from rocwright.resolve.model import Request

F = TypeVar("F", bound=Callable[..., Any])


def complete(kind: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Shell completion with names of the catalog."""

    def names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        from rocwright.catalog.load import the_catalog

        catalog = the_catalog()
        known: dict[str, list[str]] = {
            "stack": list(catalog.stacks),
            "component": list(catalog.components),
            "gpu": [*catalog.targets, "auto"],
            "base": [one for base in catalog.bases.values() for one in base.names],
        }
        return [name for name in known[kind] if name.startswith(incomplete)]

    return names


def project_options(function: F) -> F:
    """STACK, --gpu and --base: a project without a project file."""
    for option in (
        click.option("--base", help="Such as debian:sid.", shell_complete=complete("base")),
        click.option(
            "--gpu",
            "gpus",
            multiple=True,
            shell_complete=complete("gpu"),
            help="Such as gfx1151; may be given more than once, or with commas; auto takes the one found.",
        ),
        click.argument("stack", required=False, shell_complete=complete("stack")),
    ):
        function = option(function)
    return function


def json_option(function: F) -> F:
    """--json on every verb that reports."""
    return click.option("--json", "as_json", is_flag=True, help="As JSON on standard output.")(function)


def the_project(stack: str | None, gpus: tuple[str, ...], base: str | None) -> Project:
    """The project in this folder, or the one that the options name. Raises InputError."""
    from rocwright.catalog.detect import chosen_targets
    from rocwright.catalog.load import the_catalog
    from rocwright.errors import InputError

    if stack is None and not gpus and base is None:
        return project_in(Path.cwd())
    if stack is None:
        raise InputError(
            "which stack?",
            cause="--gpu and --base go with a stack's name; without them the rocwright.toml here is used",
            next_step=f"name one of {', '.join(the_catalog().stacks)}",
        )
    chosen = the_catalog().stack(stack)
    targets = chosen_targets(gpus, the_catalog(), say)
    return project_of(Request(stack=stack, gpu=targets, base=base or chosen.bases[0]), Path.cwd())


def not_a_stack(step: str, verb: str) -> None:
    """Raise InputError where a stack's name stands in the place of a step's."""
    from rocwright.catalog.load import the_catalog
    from rocwright.errors import InputError

    stack = the_catalog().stacks.get(step)
    if stack is not None and step not in the_catalog().components:
        first = stack.components[0]
        raise InputError(
            f"{step} is a stack; a step is asked for",
            cause=f"steps of it: {', '.join(stack.components)}, root/build, ...",
            next_step=f"rocwright {verb} {first} {step}, or rocwright plan {step} for all of its steps",
        )


def say(text: str) -> None:
    """Progress on standard error."""
    click.echo(text, err=True)
