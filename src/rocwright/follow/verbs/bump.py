"""`rocwright bump`."""

from __future__ import annotations

from pathlib import Path

import click

from rocbase.cli.options import json_option, say
from rocwright.cli.common import complete, here, tells_changes
from rocwright.follow.verbs.watch import settings_options


@click.command("bump")
@click.argument("components", nargs=-1, shell_complete=complete("component"))
@settings_options
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the candidate to this file. [default: rocwright.lock.candidate]",
)
@click.option("--write", is_flag=True, help="Replace the lock with it, and put its pins into rocwright.toml.")
@json_option
@tells_changes
def command(
    components: tuple[str, ...],
    take: str | None,
    cool_down: int | None,
    seconds: float | None,
    output: Path | None,
    write: bool,
    as_json: bool,
) -> None:
    """Write a candidate lock with everything that `rocwright watch` allows, or with the named components.

    Named components are updated even if rocwright.toml pins them. root/build, root/run, root/check and python
    are names too. Everything else stays as it is locked, as far as the solver allows.
    """
    from rocbase.cli.tell import print_json
    from rocwright.follow.watch.projects import bump, put_candidate, watch_settings
    from rocwright.plan.resolve.tell_difference import tell_difference
    from rocwright.project import project_in

    if write and output is not None:
        raise click.UsageError("Use either --output or --write, not both.")
    folder = here()
    project = project_in(folder)
    settings = watch_settings(folder, {"take": take, "cool_down": cool_down, "seconds": seconds})
    candidate = bump(project, components, settings, say)
    path = None
    if candidate.difference:
        path = put_candidate(project, candidate.lock, output, write=write)
    if as_json:
        print_json(
            {
                "written": str(path) if path else None,
                "changes": [change.model_dump(mode="json") for change in candidate.difference.changes],
                "ages": dict(candidate.ages),
                "steps_again": candidate.again,
                "left": [{"name": name, "why": reason} for name, reason in candidate.left],
            }
        )
        return
    for line in tell_difference(candidate.difference, ages=candidate.ages, again=candidate.again):
        click.echo(line)
    for name, reason in candidate.left:
        click.echo(f"not updated: {name}: {reason}")
    if path is not None:
        click.echo(f"written to {path}")
