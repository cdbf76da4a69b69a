"""`rocwright export`."""

from __future__ import annotations

from pathlib import Path

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import Selection, project_options, the_project
from rocwright.cli.place import say

FORMATS = (
    *("containerfile", "pipeline", "nspawn", "run", "quadlet", "compose", "powershell", "github"),
    *("requirements", "timer", "tutorial", "all"),
)


@click.command("export")
@click.argument("kind", type=click.Choice(FORMATS), metavar="FORMAT")
@project_options
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="The output folder. [default: export/FORMAT]",
)
@click.option("--force", is_flag=True, help="Overwrite existing files that differ.")
@json_option
def command(
    kind: str,
    selection: Selection,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write the lock as plain files that do not need rocwright.

    \b
    containerfile  a Containerfile and its build context, for podman, docker and buildah
    pipeline       the same with build_pipeline.sh and versions.env
    nspawn         the build in systemd-nspawn containers
    run, quadlet   scripts and systemd units of the stacks that are run
    compose        the same as a compose.yaml
    powershell     the build on Windows, where the stack has one
    github         a workflow that builds the pipeline
    requirements   requirements.lock and pylock.toml
    timer          systemd units that run rocwright cycle in this folder every night
    tutorial       TUTORIAL.md: how to change a pin by hand
    all            each of them, in a folder of its own
    """
    from rocbase.cli.tell import print_json
    from rocwright import api

    project = the_project(selection)
    lock = api.lock(project, network=False, say=say)
    folder = out or Path("export", kind)
    paths = api.export(project, kind, out or "", locked=lock, force=force)
    if as_json:
        print_json({"folder": str(folder), "files": [str(path) for path in paths], "pending": lock.pending})
        return
    for path in paths:
        click.echo(str(path))
    for text in lock.pending:
        say(f"pending: {text}")
    if lock.pending:
        say(
            "pending values are asked for when the export is used; rocwright lock fills them in: export again"
        )
