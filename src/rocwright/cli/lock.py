"""`rocwright lock`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import Selection, here, project_options, the_project
from rocwright.cli.place import say

if TYPE_CHECKING:
    from rocwright.plan.resolve.model import Lock


@click.command("lock")
@project_options
@click.option("--forget-remedies", "forget", is_flag=True, help="Drop what `build --heal` put into the lock.")
@click.option(
    "--accept",
    is_flag=True,
    help="Accept the lock as it was edited by hand, without choosing versions again.",
)
@json_option
def command(selection: Selection, forget: bool, accept: bool, as_json: bool) -> None:
    """Choose one exact version of everything and write the lock.

    Versions that fit together, the first source place that can be reached, and the exact packages of the
    root file systems: name, version, sha256 and size of each.
    """
    from rocbase.cli.tell import print_json
    from rocwright import api
    from rocwright.flow import accept_lock
    from rocwright.plan.resolve.choose import ROCM
    from rocwright.plan.resolve.files import change_request
    from rocwright.plan.resolve.folder import PROJECT

    if selection.changes and not selection.names_a_stack:
        folder = here()
        change_request(folder / PROJECT, selection.changes)
        project = api.project(folder=folder)
    else:
        project = the_project(selection)
    locked = accept_lock(project) if accept else api.resolve(project, forget_remedies=forget, say=say)
    _tell_remedies(locked)
    if as_json:
        print_json(locked.model_dump(mode="json", by_alias=True))
        return
    for name, version in locked.provided.items():
        provider = locked.rocm.name if locked.rocm and name == ROCM else locked.request.base
        click.echo(f"{name} {version}   provided by {provider}, not rebuilt")
    for component in locked.components:
        click.echo(f"{component.name} {component.version}   {component.place}")
    for root in locked.roots:
        total = sum(pin.size for pin in root.packages) / 1024**2
        click.echo(
            f"packages to {root.role}: {len(root.packages)} of {root.base}:{root.suite}, {total:.0f} MiB"
        )
    click.echo(f"written to {project.lock_path}")


def _tell_remedies(locked: Lock) -> None:
    """What is kept of the lock that was there before, and what of it may be needless now."""
    from rocwright.cli.build_report import show_remedies
    from rocwright.doctor.remedies.trail import needless

    if locked.remedies:
        show_remedies(locked)
        say("lock: its remedies are kept; rocwright lock --forget-remedies drops them")
    for remedy in locked.remedies:
        if reason := needless(remedy, locked):
            drop = f"rocwright heal --forget {remedy.issue}"
            say(f"lock: the remedy for {remedy.issue} may no longer be needed: {reason}; {drop}")
