"""`rocwright bump`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocbase.cli.options import json_option, say
from rocwright.cli.common import complete, here, tells_changes
from rocwright.follow.verbs.watch import settings_options

if TYPE_CHECKING:
    from rocwright.project import Project


@click.command("bump")
@click.argument("components", nargs=-1, shell_complete=complete("component"))
@settings_options
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the candidate to this file. [default: rocwright.lock.candidate]",
)
@click.option("--write", is_flag=True, help="Replace the lock with it, and put its pins into rocwright.toml.")
@click.option(
    "--undo", is_flag=True, help="Bring back the lock and the pins that were good before, as recorded here."
)
@json_option
@tells_changes
def command(
    components: tuple[str, ...],
    take: str | None,
    cool_down: int | None,
    seconds: float | None,
    output: Path | None,
    write: bool,
    undo: bool,
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
    if undo:
        if components or write or output is not None:
            raise click.UsageError("--undo takes no components, no --write and no --output.")
        _undo(project, as_json)
        return
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


def _undo(project: Project, as_json: bool) -> None:
    from rocbase.cli.tell import print_json
    from rocwright.follow.watch.undo import find_good, put_back
    from rocwright.model.architecture import described
    from rocwright.plan.resolve.files import read_lock
    from rocwright.plan.resolve.tell_difference import tell_difference
    from rocwright.records.opening import read_records

    with read_records(project.home) as records:
        good = find_good(project, read_lock(project.lock_path), records)
    kept = put_back(project, good)
    if as_json:
        changes = [change.model_dump(mode="json") for change in good.difference.changes]
        kernel = {"then": good.kernel, "now": described()} if good.kernel else None
        print_json(
            {"written": str(project.lock_path), "run": good.run.id, "changes": changes, "kernel": kernel}
        )
        return
    for line in tell_difference(good.difference):
        click.echo(line)
    if good.kernel:
        click.echo(f"not brought back: it was good on {good.kernel}, and this is {described()}")
    click.echo(f"written to {project.lock_path}: {good.run.outcome} {good.run.started}, run {good.run.id}")
    click.echo(f"the lock before is in {kept}; rocwright build takes what is kept from the store")
