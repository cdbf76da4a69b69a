"""`rocwright lock`."""

from __future__ import annotations

from pathlib import Path

import click

from rocwright.cli.common import Asked, json_option, project_options, say, the_project


@click.command("lock")
@project_options
@json_option
def command(asked: Asked, as_json: bool) -> None:
    """Choose one exact version of everything and write the lock.

    Versions that fit together, the first source place that can be reached, and the exact packages of the
    root file systems: name, version, sha256 and size of each.
    """
    from rocwright.cli.tell import print_json
    from rocwright.flow import lock, project_in
    from rocwright.resolve.choose import ROCM
    from rocwright.resolve.files import PROJECT, change_request

    if asked.changes and not asked.names_a_stack:
        change_request(Path.cwd() / PROJECT, asked.changes)
        project = project_in(Path.cwd())
    else:
        project = the_project(asked)
    made = lock(project, say)
    if as_json:
        print_json(made.model_dump(mode="json", by_alias=True))
        return
    for name, version in made.provided.items():
        where = made.rocm.name if made.rocm and name == ROCM else made.request.base
        click.echo(f"{name} {version}   provided by {where}, not rebuilt")
    for component in made.components:
        click.echo(f"{component.name} {component.version}   {component.place}")
    for root in made.roots:
        total = sum(pin.size for pin in root.packages) / 1024**2
        click.echo(
            f"packages to {root.role}: {len(root.packages)} of {root.base}:{root.suite}, {total:.0f} MiB"
        )
    click.echo(f"written to {project.lock_path}")
