"""`rocwright heal`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option
from rocwright.cli.common import Selection, project_options, the_project
from rocwright.cli.place import in_place, say

if TYPE_CHECKING:
    from rocwright.plan.resolve.model import Remedy
    from rocwright.project import Project


def _issues(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from rocwright.catalog.issue import the_issues

    return [name for name in the_issues()[0] if name.startswith(incomplete)]


@click.command("heal")
@project_options
@click.option("--explain", is_flag=True, help="Show the history of each remedy (the default).")
@click.option("--forget", metavar="ISSUE", shell_complete=_issues, help="Remove the remedies of an issue.")
@json_option
def command(selection: Selection, explain: bool, forget: str | None, as_json: bool) -> None:
    """What `rocwright build --heal` put into the lock: which failure, which known issue, which action, what
    that changed, and whether it helped. A plain build uses the remedies and does not change them.
    """
    from rocbase.cli.tell import print_json
    from rocbase.errors import InputError
    from rocwright import api
    from rocwright.doctor.remedies.trail import as_data, lines

    if explain and forget:
        raise click.UsageError("Use either --explain or --forget, not both.")
    project = the_project(selection)
    try:
        forgotten = api.forget_remedies(project, forget) if forget else api.remedies(project)[:0]
    except InputError as error:
        if not project.lock_path.exists():
            error.next_step = selection.after("build")
        raise
    locked = api.lock(project)
    if forget:
        _tell_forgotten(selection, project, forgotten)
        if not as_json:
            return
    if as_json:
        print_json(as_data(locked))
        return
    if not locked.remedies:
        click.echo(in_place("the lock has no remedies; rocwright build --heal tries those that are known"))
    for remedy in locked.remedies:
        click.echo(click.style(f"{remedy.issue} · {remedy.component}", bold=True))
        for label, text in lines(remedy, locked):
            click.echo(f"  {click.style(f'{label:<6}', bold=True)}  {text}")


def _tell_forgotten(selection: Selection, project: Project, forgotten: Sequence[Remedy]) -> None:
    from rocwright.doctor.remedies.words import does
    from rocwright.plan.resolve.lock import relocks

    say(f"{len(forgotten)} removed from {project.lock_path}")
    chose = [
        does(remedy.action, remedy.component)
        for remedy in forgotten
        if remedy.in_force and relocks(remedy.action)
    ]
    if chose:
        say(f"the lock still has what they chose ({'; '.join(chose)}); to choose again without:")
        say(f"  {selection.after('lock')}")
    if any(remedy.in_force for remedy in forgotten):
        say("the next build rebuilds without them what was built with them:")
        say(f"  {selection.after('build')}")
