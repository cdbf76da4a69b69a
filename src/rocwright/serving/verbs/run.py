"""`rocwright run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option, say
from rocwright.cli.common import (
    complete,
    complete_gpu,
    engine_option,
    origin_option,
    versions_of,
    with_origin,
)
from rocwright.serving.verbs.run_program import (
    PROGRAM,
    Chosen,
    With,
    WithProgram,
    agreement,
    check_folder,
    check_words,
    companions,
    had,
    requirements,
    run_program,
    show_program,
    start_notebook,
    variables,
    write_image,
)

if TYPE_CHECKING:
    from rocwright.serving.api import StartedServer


@click.command("run", cls=WithProgram)
@click.argument("stack", required=False, shell_complete=complete("stack"))
@click.option(
    "--model",
    "-m",
    default="",
    metavar="MODEL",
    help="What to serve: a file, a folder, hf:OWNER/NAME/FILE of a hub, or tiny, which is made here.",
)
@click.option(
    "--with",
    "beside",
    multiple=True,
    callback=companions,
    metavar="NAME[=FILE]",
    help="A file that belongs to the model, such as vae=FILE, or an optional component of STACK; repeatable.",
)
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="NAME=VERSION",
    help="Pin a component of STACK: pytorch=2.6.0; repeatable.",
)
@click.option(
    "--accept-missing",
    multiple=True,
    metavar="LIBRARY",
    help="Accept a library of ROCm without code for the GPU, such as rocblas; repeatable.",
)
@click.option("--trust-model", is_flag=True, help="Load pickled weights, which can run any program.")
@click.option(
    "--gpu",
    default="auto",
    show_default=True,
    shell_complete=complete_gpu,
    help='Such as gfx1151 or "RX 580"; auto is the GPU of this machine.',
)
@click.option("--base", default="", help="Such as debian:sid.", shell_complete=complete("base"))
@origin_option
@click.option("--name", default="", help="What to call the server.  [default: the stack's name]")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on; with another than the loopback a key is made and asked for.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="The port.  [default: the product's own]")
@click.option(
    "--in",
    "place",
    type=click.Choice(["host", "podman", "docker"]),
    default="host",
    show_default=True,
    help="Where to run it; host needs no container engine: a sandbox with the base from the store.",
)
@click.option("--on", default="", metavar="DEVICE", help="What to compute on: gpu, cpu, software.")
@click.option("--no-auth", "key", flag_value=False, default=True, help="Ask nobody for a key.")
@click.option("--detach", "-d", is_flag=True, help="Leave it running, and return once it can be used.")
@click.option("--dry-run", "dry", is_flag=True, help="Print the command; write and start nothing.")
@click.option("--yes", "-y", is_flag=True, help="Build what is missing without a question.")
@click.option("--try", "tries", is_flag=True, help="Ask it something, and print the answer.")
@click.option("--shell", is_flag=True, help="A shell in the environment of STACK, a stack of wheels.")
@click.option("--jupyter", is_flag=True, help="A Jupyter server in the environment of STACK.")
@click.option(
    "--image",
    metavar="FOLDER",
    help="Write the environment of STACK as an OCI image, with a unit for podman and a compose file.",
)
@click.option(
    "--env",
    multiple=True,
    callback=variables,
    metavar="NAME=VALUE",
    help="A variable for the program; repeatable.",
)
@click.option(
    "--require",
    multiple=True,
    callback=requirements,
    metavar="REQUIREMENT",
    help="A Python package to add to the environment of STACK, such as pandas; repeatable.",
)
@engine_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    stack: str | None,
    model: str,
    beside: With,
    sets: tuple[str, ...],
    accept_missing: tuple[str, ...],
    trust_model: bool,
    gpu: str,
    base: str,
    stack_origin: str,
    name: str,
    host: str,
    port: int | None,
    place: str,
    on: str,
    key: bool,
    detach: bool,
    dry: bool,
    yes: bool,
    tries: bool,
    shell: bool,
    jupyter: bool,
    image: str | None,
    env: dict[str, str],
    require: tuple[str, ...],
    engine: str | None,
    as_json: bool,
) -> None:
    """Serve a model with STACK, or with the best one for this machine's GPU; build it first if need be.

    It listens on this machine alone, and ends with Ctrl-C; --detach leaves it running (rocwright ps, stop).

    \b
    rocwright run STACK -- --ctx-size 4096 options of the server's own program
    rocwright run STACK -- python x.py     a program in the environment of a stack of wheels
    rocwright run STACK --shell            a shell there
    rocwright run STACK --jupyter          a Jupyter server there

    A program sees the current folder, which it may change, and a home of its own, not yours.
    """
    stack, words = with_origin(stack, stack_origin), context.meta[PROGRAM]
    options = words if words and words[0].startswith("-") and not (shell or jupyter or image) else ()
    program = shell or bool(words and not options)
    check_words(
        context, "--image" if image else "a program" if program else "--jupyter" if jupyter else "a server"
    )
    chosen = Chosen(
        stack=stack,
        gpu=gpu,
        base=base,
        versions=versions_of(sets),
        optional=beside.components,
        accept_missing=accept_missing,
        agree=agreement(context, yes=yes),
    )
    if image:
        write_image(had(chosen, require, engine), image)
        return
    if program or jupyter:
        check_folder()
    if program:
        if place == "docker":
            raise click.UsageError(
                "A program runs in host or podman; --image FOLDER makes an image of its own."
            )
        if dry and place != "host":
            raise click.UsageError("--dry-run prints the command that runs a program in host.")
        environment = had(chosen, require, engine, dry=dry)
        if dry:
            show_program(environment, context.meta[PROGRAM], env)
            return
        raise SystemExit(run_program(environment, context.meta[PROGRAM], env, place))
    from rocbase.cli.tell import print_json
    from rocwright.execution.progress import choose_progress
    from rocwright.serving import api
    from rocwright.serving.verbs.servers import as_data, show

    if jupyter:
        running = start_notebook(chosen, require, engine, name=name, host=host, port=port or 0, detach=detach)
    else:
        running = api.run_server(
            stack or "",
            model=model,
            beside=beside.files,
            trust_model=trust_model,
            gpu=gpu,
            base=base,
            versions=chosen.versions,
            optional=chosen.optional,
            accept_missing=chosen.accept_missing,
            name=name,
            host=host,
            port=port or 0,
            place=place,  # type: ignore[arg-type]  # click has checked it
            on=on,
            key=key,
            options=options,
            variables=env,
            require=require,
            detach=detach,
            dry=dry,
            engine=engine,
            progress=choose_progress(),
            agree=chosen.agree,
            say=say,
        )
    if as_json:
        print_json(as_data(running.server, runs=not dry) | ({"key": running.key} if running.key else {}))
    elif dry:
        _show_command(running)
    else:
        show(running, detached=detach, answer=api.ask_server(running) if tries else None)
    if not (detach or dry):
        _follow(running)


def _show_command(running: StartedServer) -> None:
    from rocwright.serving.verbs.servers import typed

    click.echo(typed(running.server.command))
    say("nothing was written: a start also makes mount points and a filter of system calls")


def _follow(running: StartedServer) -> None:
    """Wait until the server ends, and end it with Ctrl-C; nothing of it stays."""
    from contextlib import suppress

    from rocwright.serving import api

    with suppress(KeyboardInterrupt):
        api.attend_server(running)
    say(f"this run of {running.server.name} has ended")
