"""`rocwright init`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from rocbase.cli.options import say
from rocwright.cli.common import Selection, complete, project_options

F = TypeVar("F", bound=Callable[..., Any])


def stack_words(function: F) -> F:
    """STACK as in other verbs, or --stack."""

    @wraps(function)
    def gather(*args: Any, stack: str | None, named: str | None, **rest: Any) -> Any:
        if stack and named and stack != named:
            raise click.UsageError(f"STACK is {stack}, and --stack is {named}: name one.")
        return function(*args, stack=stack or named, **rest)

    for added in (
        click.option("--stack", "named", shell_complete=complete("stack"), help="The same as STACK."),
        click.argument("stack", required=False, shell_complete=complete("stack")),
    ):
        gather = added(gather)
    return cast("F", gather)


@click.command("init")
@partial(project_options, stack=stack_words)
@click.option("--force", is_flag=True, help="Overwrite an existing rocwright.toml.")
def command(selection: Selection, force: bool) -> None:
    """Write rocwright.toml: this stack, for these GPUs, on this base.

    It is written only where versions fit together, by what the catalog knows: nothing is asked outside.
    """
    from rocbase.errors import InputError
    from rocwright import api
    from rocwright.catalog.load import the_catalog
    from rocwright.home import Home
    from rocwright.plan.resolve.elsewhere import check_resolves
    from rocwright.plan.resolve.files import write_request
    from rocwright.plan.resolve.folder import PROJECT
    from rocwright.verify.verdict import lines, verdict

    if not selection.stack:
        raise InputError(
            "no stack is named",
            cause=f"{PROJECT} says which one is built",
            next_step=f"{replace(selection, stack='STACK').after('init')}; rocwright stacks lists them",
        )
    request = api.request(
        selection.stack or "", selection.gpus, selection.base or "", say=say, **selection.changes
    )
    for note in check_resolves(request, the_catalog()).notes:
        say(note)
    for gpu in request.gpu:
        judged = verdict(the_catalog().target(gpu), the_catalog(), Home.default(), request.stack)
        for label, text in lines(judged):
            say(f"{gpu}: {label}: {text}")
    path = Path.cwd() / PROJECT
    if path.exists() and not force:
        raise InputError(
            f"{PROJECT} already exists",
            cause="it may have your own pins",
            next_step="edit it, or overwrite it: rocwright init --force ...",
        )
    write_request(path, request)
    say(f"{PROJECT}: {request.stack} for {', '.join(request.gpu)} on {request.base}")
    say("next: rocwright lock, then rocwright build")
