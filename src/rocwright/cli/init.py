"""`rocwright init`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from rocwheel.cli.common import say
from rocwright.cli.common import Asked, complete, project_options

STACK = click.option("--stack", required=True, shell_complete=complete("stack"), help="Such as llama-vulkan.")


@click.command("init")
@partial(project_options, stack=STACK)
@click.option("--force", is_flag=True, help="Overwrite an existing rocwright.toml.")
def command(asked: Asked, force: bool) -> None:
    """Write rocwright.toml: this stack, for these GPUs, on this base.

    It is written only where versions fit together, by what the catalog knows: nothing is asked outside.
    """
    from rocwheel.errors import InputError
    from rocwright import api
    from rocwright.catalog.load import the_catalog
    from rocwright.home import Home
    from rocwright.resolve.elsewhere import check_resolves
    from rocwright.resolve.files import PROJECT, write_request
    from rocwright.verify.verdict import lines, verdict

    request = api.request(asked.stack or "", asked.gpus, asked.base or "", say=say, **asked.changes)
    for note in check_resolves(request, the_catalog()).notes:
        say(note)
    for gpu in request.gpu:
        found = verdict(the_catalog().target(gpu), the_catalog(), Home.default(), request.stack)
        for label, text in lines(found):
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
