"""`rocwright init`."""

from __future__ import annotations

from pathlib import Path

import click

from rocwheel.cli.common import say
from rocwright.cli.common import arch_option, complete, complete_gpu


@click.command("init")
@click.option("--stack", required=True, shell_complete=complete("stack"), help="Such as llama-vulkan.")
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    shell_complete=complete_gpu,
    help='Such as gfx1151 or "RX 580"; or auto.',
)
@click.option("--base", shell_complete=complete("base"), help="Such as debian:sid.")
@arch_option
@click.option("--force", is_flag=True, help="Overwrite an existing rocwright.toml.")
def command(
    stack: str, gpus: tuple[str, ...], base: str | None, architecture: str | None, force: bool
) -> None:
    """Write rocwright.toml: this stack, for these GPUs, on this base."""
    from rocwheel.errors import InputError
    from rocwright import api
    from rocwright.catalog.load import the_catalog
    from rocwright.resolve.files import PROJECT, write_request
    from rocwright.resolve.validate import check_request

    request = api.request(stack, gpus, base or "", architecture=architecture or "", say=say)
    check_request(request, the_catalog())
    path = Path.cwd() / PROJECT
    if path.exists() and not force:
        raise InputError(
            f"{PROJECT} already exists",
            cause="it may have your own pins",
            next_step="edit it, or overwrite it: rocwright init --force ...",
        )
    write_request(path, request)
    say(f"{PROJECT}: {stack} for {', '.join(request.gpu)} on {request.base}")
    say("next: rocwright lock, then rocwright build")
