"""`rocwright env`."""

from __future__ import annotations

import click

from rocbase.cli.options import json_option, say
from rocwright.cli.common import complete_gpu


@click.command("env")
@click.option(
    "--gpu",
    default="auto",
    show_default=True,
    shell_complete=complete_gpu,
    help="Such as gfx1103, or 780M.",
)
@click.option(
    "--for",
    "scope",
    type=click.Choice(["build", "run"]),
    default="run",
    show_default=True,
    help="The scope: what the variables are for.",
)
@click.option(
    "--shell",
    type=click.Choice(["bash", "fish", "nu", "powershell"]),
    default="bash",
    show_default=True,
    help="The shell to write for; bash also covers sh and zsh.",
)
@json_option
def command(gpu: str, scope: str, shell: str, as_json: bool) -> None:
    """The environment variables that a GPU needs, each with its reason and source: eval "$(rocwright env)".

    Optional variables are shown as comments. An override is never in the environment of a build.
    """
    from rocbase.cli.tell import print_json
    from rocwright import api
    from rocwright.catalog.environment import environment
    from rocwright.catalog.load import the_catalog
    from rocwright.export.shells import Shell, assignment, comment

    catalog = the_catalog()
    target = api.target(gpu, say)
    settings = environment(catalog, target, "build" if scope == "build" else "run")
    if as_json:
        data = [setting.model_dump(mode="json", exclude={"scope"}) for setting in settings]
        print_json({"gpu": target.name, "for": scope, "variables": data})
        return
    click.echo(comment(f"{target.name} ({', '.join(target.products)}): to {scope}"))
    for setting in settings:
        confidence = f"; confidence {setting.confidence}" if setting.confidence else ""
        click.echo(comment(f"{setting.need}: {setting.reason} [{setting.source}{confidence}]"))
        line = assignment(setting.variable, setting.value, Shell(shell))
        click.echo(comment(line) if setting.need == "optional" else line)
