"""`rocwright lock`."""

from __future__ import annotations

import click

from rocwright.cli.common import json_option, project_options, say, the_project


@click.command("lock")
@project_options
@json_option
def command(stack: str | None, gpus: tuple[str, ...], base: str | None, as_json: bool) -> None:
    """Choose one exact version of everything and write the lock.

    Versions that fit together, the first source place that can be reached, and the exact packages of the
    root file systems: name, version, sha256 and size of each.
    """
    from rocwright.cli.tell import print_json
    from rocwright.flow import lock

    project = the_project(stack, gpus, base)
    made = lock(project, say)
    if as_json:
        print_json(made.model_dump(mode="json", by_alias=True))
        return
    for name, version in made.provided.items():
        click.echo(f"{name} {version}   provided by {made.request.base}, not rebuilt")
    for component in made.components:
        click.echo(f"{component.name} {component.version}   {component.place}")
    for root in made.roots:
        total = sum(pin.size for pin in root.packages) / 1024**2
        click.echo(
            f"packages to {root.role}: {len(root.packages)} of {root.base}:{root.suite}, {total:.0f} MiB"
        )
    click.echo(f"written to {project.lock_path}")
